/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums over all processes read so far, by topic. Each topic has a header of its own.
 */
#ifndef XT_MERGE_SUMS_H
#define XT_MERGE_SUMS_H

#include "merge/naming/joined_paths.h"
#include "merge/sums/log_counts.h"
#include "merge/sums/losses.h"
#include "merge/sums/memory.h"
#include "merge/sums/range_sums.h"
#include "merge/sums/rank_spread.h"
#include "merge/sums/recording.h"
#include "merge/sums/timeline.h"
#include "merge/sums/transfers.h"

/* GPU time by the kind of code that launched the work. */
struct code_sums {
	uint64_t backward_gpu_ns[JOIN_RESULTS]; /* by enum join_result */
	uint64_t user_code_gpu_ns;		/* of paths with a frame of the user's own code */
	uint64_t compiled_unknown_gpu_ns;	/* of code of torch.compile without source lines */
};

struct sums {
	struct log_counts events;
	struct code_sums code;
	struct range_tree ranges;
	struct transfers transfers;
	struct memory_sums memory;
	struct collective_sums collectives; /* if idle time was computed */
	struct rank_spread spread;
	struct recording recording;
	struct handoffs handoffs;
	struct stack_sampling sampling;
	struct loss_sums losses;
};

#endif
