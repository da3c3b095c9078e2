/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges: in which of them each thread was at each time.
 *
 * A range is pushed and popped by one thread, for each domain in a stack of its own; one that is
 * started may be ended by any thread, and counts for the thread that started it. Where a thread is
 * in several ranges, those opened later are within those opened earlier. Each such nest is a node
 * of a tree, and for each thread there is kept when it came to which node: 12 bytes for each event
 * (while the log is read: 40, and as many while they are sorted). There are at most as many nodes
 * as events and some 260,000 more, however ranges cross.
 */
#ifndef XT_MERGE_RANGES_H
#define XT_MERGE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_DEPTH_MAX 256 /* what is opened deeper counts for the range around it */
#define RANGE_NONE	 0   /* the root of the tree: in no range */

/* The numbers that instances of a range carried. */
struct range_payload {
	uint64_t count;
	double min;
	double max;
	double sum;
};

#define RANGE_CATEGORY_SEVERAL UINT32_MAX

struct range_node {
	uint32_t parent;
	uint32_t domain; /* XT_STRING_ID; 0: the default domain */
	uint32_t text;	 /* XT_STRING_ID */
	uint32_t stack;	 /* XT_STACK_ID of who opened it */
	uint32_t depth;
	uint32_t category; /* of all of them, 0: none, or RANGE_CATEGORY_SEVERAL */
	uint64_t count;	   /* how often it was opened */
	struct range_payload payload;
};

struct range_event {
	uint64_t time_ns;
	uint64_t key; /* of starts and ends: which belong together */
	uint32_t thread;
	uint32_t domain;
	uint32_t text;
	uint32_t stack;
	uint32_t operation; /* enum xt_range_operation */
	uint32_t category;
	uint32_t payload_type; /* NVTX's */
	uint64_t payload;
};

struct range_counts {
	uint64_t opened;
	uint64_t pops_unmatched; /* without a push in their thread and domain */
	uint64_t ends_unmatched; /* without a start */
	uint64_t keys_recurring; /* starts with the key of another */
	uint64_t unclosed;
	uint64_t not_nested; /* that count for the range around them, some of the time at least */
};

/* All zeros is an empty one. */
struct ranges {
	struct range_node *nodes; /* node 0 is the root */
	size_t node_count;
	size_t node_capacity;
	uint32_t *slots; /* node by hash of what it is; 0 is free */
	size_t slot_count;
	struct raw_event *raw; /* until ranges_index() */
	size_t raw_count;
	size_t raw_capacity;
	struct range_label *labels; /* what raw events refer to */
	size_t label_count;
	size_t label_capacity;
	uint64_t *times_ns; /* by thread and time: when a thread came to … */
	uint32_t *states;   /* … which node */
	struct range_thread *threads;
	size_t thread_count;
	struct range_counts counts;
};

/* Adds what b has to a. */
void range_payload_add(struct range_payload *a, const struct range_payload *b);

/* The value of 64 bits of that type of NVTX as {1, value, value, value}; all zeros if it is none. */
struct range_payload range_payload_of(uint64_t bits, uint32_t type);

/* 0 or -ENOMEM. Marks and names are passed over. */
int ranges_add(struct ranges *ranges, const struct range_event *event);

/* All are there: to be called once, before what follows. 0 or -ENOMEM. */
int ranges_index(struct ranges *ranges);
void ranges_free(struct ranges *ranges);

/* What a thread was in, in the order of time: from times_ns[i] on in node states[i]. */
struct range_history {
	const uint64_t *times_ns;
	const uint32_t *states;
	size_t count;
};
struct range_history ranges_history(const struct ranges *ranges, uint32_t thread);

/* The innermost range in which the thread was at that time, as node. */
uint32_t ranges_at(struct ranges *ranges, uint32_t thread, uint64_t time_ns);

#endif
