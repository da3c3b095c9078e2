/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the collectives of a log while it is read, and what was launched before each.
 */
#ifndef XT_MERGE_RANK_COLLECTOR_H
#define XT_MERGE_RANK_COLLECTOR_H

#include <stdbool.h>

#include "merge/sums/rank_log.h"
#include "merge/sums/timeline.h"

#define RANK_MEMBERS_MAX 512 /* programs have some tens; others share one that is not compared */
#define RANK_STREAMS_MAX 16  /* with collectives, of a device */

struct model;

/* Time of a place before a collective. */
struct place_time {
	uint32_t place;	       /* index in the aggregate, at last the node of its path */
	uint32_t units;	       /* of RANK_TIME_UNIT_LOG */
	uint32_t beside_units; /* the part in kernels that mostly ran beside collectives */
};

/* A call in which the CPU waited for a GPU. */
struct cpu_wait {
	uint64_t end_ns, wait_ns;
	bool is_launch; /* it waited only if the queue of the GPU was full */
};

/* Work or a part of a gap that waits for a collective. */
struct rank_entry;

/* A collective that may still run. */
struct running {
	size_t index; /* in the list */
	uint64_t enter_ns, end_ns;
};

/* The launch of a graph, and its work on a device. */
struct graph_launch {
	bool is_open;	/* it is not among the waits yet */
	bool is_longer; /* it returned at return_ns or later */
	uint64_t enter_ns, return_ns;
	uint64_t start_ns; /* of its first work */
	uint64_t until_ns; /* end of its last work so far */
	uint64_t busy_ns;  /* time with work of it */
};

struct device_collector {
	struct graph_launch graph; /* the latest */
	struct rank_entry *pending;
	size_t pending_count, pending_capacity;
	struct running open[RANK_STREAMS_MAX];
	size_t open_count;
	uint32_t streams[RANK_STREAMS_MAX]; /* with collectives, in the order of their first one */
	size_t stream_count;
	uint64_t kernels_until_ns;     /* end of all kernels so far other than collectives */
	uint64_t collectives_until_ns; /* end of all collectives so far */
	uint64_t idle_ns;	       /* of the gaps since the last collective */
	uint64_t until_ns;	       /* end of all work so far */
	uint64_t busy_ns;	       /* time with work since the first collective began */
	uint64_t starved_lead_ns; /* least lead of work after a gap, since the last collective */
};

struct rank_collector {
	struct device_collector devices[TIMELINE_DEVICES_MAX];
	struct place_time *taken; /* of all collectives, as rank_collective.times_end counts them */
	size_t taken_count, taken_capacity;
	struct cpu_wait *cpu_waits; /* of all threads, in any order */
	size_t cpu_wait_count, cpu_wait_capacity;
	uint32_t last_place; /* of the last work, index in the aggregate; UINT32_MAX: none */
	uint32_t *places;    /* by collective: index in the aggregate */
	size_t place_capacity;
	struct gap_part {
		uint32_t place;
		uint64_t ns;
	} * gap; /* parts of the gap before the next work */
	size_t gap_count, gap_capacity;
	bool is_settled; /* see rank_log_settle() */
};

/* Free it with rank_collector_free(). */
struct rank_collector *rank_collector_new(void);

/* Returns the index of a member, which is added if needed. */
uint16_t rank_log_member(struct rank_log *log, const struct model *model, uint32_t device,
			 uint64_t communicator, bool is_by_order);

/* Call it after the last work. */
void rank_collector_finish(struct rank_collector *collector);

/* Sorts the waits of the CPU by their ends, and cuts overlaps off. */
void rank_collector_sort_waits(struct rank_collector *collector);

/* A time in units of RANK_TIME_UNIT_LOG, at most UINT32_MAX. */
uint32_t rank_units(uint64_t ns);

/* Adds up neighbours with the same place. Returns how many are left. */
size_t rank_sum_places(struct place_time *times, size_t count);

void rank_collector_free(struct rank_collector *collector);

#endif
