/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When and how the processes of a run were recorded: pauses, missing beginnings, other users of
 * CUPTI, and sampled call stacks.
 */
#ifndef XT_MERGE_RECORDING_H
#define XT_MERGE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/model.h"

/* The part of a process that its log has. Times are since the start of the log. */
struct recorded_part {
	uint64_t from_ns, until_ns; /* of its events; from_ns is 0 if it has the beginning */
	uint64_t full_ns;	    /* when --max-size ended recording; 0: it did not */
	bool is_flight_recorder;    /* otherwise, --max-size dropped the beginning */
	char trigger[256];	    /* why the snapshot was taken; "": it is none */
};

struct recording {
	uint64_t pause_count; /* of recording, with the beginning that a log lacks */
	uint64_t paused_ns;
	uint64_t stop_count;	   /* pauses without records of allocations */
	uint64_t recorded_ns;	   /* in logs with pauses: time between them */
	uint64_t cut_count;	   /* logs whose beginning was dropped by a limit of size or time */
	struct recorded_part part; /* of the first log that has only a part of its process */
	uint64_t part_count;	   /* logs that have only a part */
	size_t attached_count;	   /* processes that ran already when the tracer was loaded */
	uint64_t attached_ns;	   /* for how long at most */
	uint64_t early_graph_count; /* launches of graphs that were made before recording began */
	bool has_simulated_gpu;
};

/* Times at which CUPTI was released to another tool. */
struct handoffs {
	uint64_t count;
	uint64_t total_ns;
	char first_tool[64];
};

/* Times with sampled call stacks. */
struct stack_sampling {
	uint64_t total_ns;
	uint64_t one_in_min, one_in_max;
	uint64_t estimated_gpu_ns; /* part of attributed: estimated from sampled calls */
};

/* Add what the model of a log knows. */
void recording_add(struct recording *recording, const struct model *model,
		   const struct xt_log_header *header);
void handoffs_add(struct handoffs *handoffs, const struct model *model);
void stack_sampling_add(struct stack_sampling *sampling, const struct model *model);

#endif
