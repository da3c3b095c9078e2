/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges: finds the ranges around a thread at any time.
 *
 * One thread pushes and pops a range; each domain has its own stack. Any thread may end a started
 * range, which counts for the thread that started it. A range is nested in the ranges that are open
 * when it opens.
 *
 * Each nesting is a node of a tree. For each thread, a list has times and nodes, with 12 bytes per
 * event. Reading takes 40 bytes per event, and sorting another 40. There are at most as many nodes
 * as events, plus about 260,000, even if ranges cross.
 *
 * Names that a program gave through NVTX to categories, threads, devices, contexts and streams.
 *
 * Values that programs attached to NVTX ranges and marks with the payload extension (column 12 of
 * RANGE).
 */
#ifndef XT_MERGE_RANGES_H
#define XT_MERGE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/grow.h"
#include "log/base/hash_table.h"
#include "xtrace/reader.h"

struct model;

struct range_name {
	uint64_t key;	 /* category number, tid, or CUPTI's number */
	uint32_t domain; /* for streams: the context */
	uint32_t text;	 /* XT_STRING_ID */
	uint32_t order;	 /* of its row */
};

/* All zeros is an empty table. */
struct range_names {
	LIST(struct range_name);
};

/* Adds a name. */
void range_names_add(struct range_names *names, uint32_t domain, uint64_t key, uint32_t text);

/* Call it once, after the last name and before range_names_find(). */
void range_names_index(struct range_names *names);
void range_names_free(struct range_names *names);

/* Returns the last name given, as XT_STRING_ID; 0: none. */
uint32_t range_names_find(const struct range_names *names, uint32_t domain, uint64_t key);

#define RANGE_VALUES_MAX 128 /* per range; the tracer writes fewer */

struct range_value {
	struct xt_bytes name;
	struct xt_bytes value;
	bool is_number; /* a JSON number that a double represents exactly */
};

/* An id of a log, which may be damaged. */
static inline uint32_t id_or_none(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
}

/*
 * Writes the values given at the begin and the end of a range (XT_STRING_ID; 0: none). Returns
 * their number. If two values have the same name, the later one counts. They point into the model.
 */
size_t range_values(const struct model *model, uint32_t begin, uint32_t end,
		    struct range_value values[RANGE_VALUES_MAX]);

/* Returns the same values as a JSON object, which the caller frees. */
char *range_values_json(const struct model *model, uint32_t begin, uint32_t end);

#define RANGES_DEPTH_MAX 256 /* deeper ranges count for the range around them */
#define RANGE_NONE	 0   /* the root of the tree: no range */

/* The numeric payloads of the instances of a range. */
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
	uint32_t stack;	 /* XT_STACK_ID of the opening call */
	uint32_t depth;
	uint32_t category; /* category of all instances; 0: none, or RANGE_CATEGORY_SEVERAL */
	uint64_t count;	   /* number of instances */
	struct range_payload payload;
};

struct range_event {
	uint64_t time_ns;
	uint64_t key; /* pairs starts with ends */
	uint32_t thread;
	uint32_t domain;
	uint32_t text;
	uint32_t stack;
	uint32_t operation; /* enum xt_range_operation */
	uint32_t category;
	uint32_t payload_type; /* NVTX's type */
	uint64_t payload;
};

struct range_counts {
	uint64_t opened;
	uint64_t pops_unmatched; /* without a push in their thread and domain */
	uint64_t ends_unmatched; /* without a start */
	uint64_t keys_recurring; /* starts with the key of an open range */
	uint64_t unclosed;
	uint64_t not_nested; /* counted for the range around them, at least for a time */
};

/* lacks_beginning: ranges may have begun before the log does, so their ends need no beginning. */
void range_counts_add(struct range_counts *sums, const struct range_counts *counts,
		      bool lacks_beginning);

/* All zeros is an empty table. */
struct ranges {
	LIST(struct range_node) nodes;	 /* node 0 is the root */
	struct xt_hash_table children;	 /* items: nodes, by parent, domain, text and stack */
	LIST(struct raw_event) raw;	 /* until ranges_index() */
	LIST(struct range_label) labels; /* texts of the raw events */
	uint64_t *times_ns; /* by thread and time: the moments when a thread changed its range */
	uint32_t *states;   /* the node from that moment on */
	struct range_thread *threads;
	size_t thread_count;
	struct range_counts counts;
};

/* Adds b to a. */
void range_payload_add(struct range_payload *a, const struct range_payload *b);

/* What 64 bits of an NVTX payload type are. */
struct range_number {
	enum {
		RANGE_NO_NUMBER,
		RANGE_UNSIGNED,
		RANGE_SIGNED, /* bits are an int64_t */
		RANGE_FLOAT,
		RANGE_DOUBLE
	} kind;
	union {
		uint64_t bits;
		double real;
	};
};
struct range_number range_number_of(uint64_t bits, uint32_t type);

/* Ignores marks and names. */
void ranges_add(struct ranges *ranges, const struct range_event *event);

/* Call it once, after the last event and before the functions below. */
void ranges_index(struct ranges *ranges);
void ranges_free(struct ranges *ranges);

/*
 * Nests the node inner and its outer nodes in another node. Creates missing nodes, which have no
 * instances. Returns 0, or -E2BIG if too deep.
 */
int ranges_graft(struct ranges *ranges, uint32_t outer, uint32_t inner, uint32_t *node_out);

/* Returns the node that ranges_graft() made; RANGE_NONE if it did not. */
uint32_t ranges_grafted(const struct ranges *ranges, uint32_t outer, uint32_t inner);

/* A call whose range is wanted. */
struct range_call {
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t stack;	 /* XT_STACK_ID */
	uint64_t time_ns;
};

/* The nodes of a thread in order of time: states[i] is valid from times_ns[i] on. */
struct range_history {
	const uint64_t *times_ns;
	const uint32_t *states;
	size_t count;
};
struct range_history ranges_history(const struct ranges *ranges, uint32_t thread);

/* Returns the node of the innermost range of the thread at that time. */
uint32_t ranges_at(struct ranges *ranges, uint32_t thread, uint64_t time_ns);

#endif
