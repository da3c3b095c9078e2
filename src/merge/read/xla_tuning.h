/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins work of XLA's autotuner to the compilation that makes it.
 *
 * While XLA compiles a program, a pass measures variants of operations in threads of a pool, and
 * waits for them. The pass and each trial have an NVTX range, but no number joins them. A pass
 * ends after its trials. So a trial belongs to a pass if it begins during the pass, and no other
 * thread compiles at any time of the pass.
 *
 * The tuner also works outside of the ranges of its trials, for example to fill buffers. Such a
 * call belongs to the pass if its stack shows that code that makes trials made it.
 */
#ifndef XT_MERGE_XLA_TUNING_H
#define XT_MERGE_XLA_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/ranges.h"

struct tuning_pass {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t range;	 /* node of the pass */
	bool is_alone;	 /* no other thread compiles at any time of it */
};

struct tuning_passes {
	struct tuning_pass *rows;
	size_t count, capacity;
};

/* All zeros is an empty table. */
struct xla_tuning {
	struct tuning_passes passes; /* by start */
	uint64_t *helpers;	     /* index of the pass and thread, ascending */
	size_t helper_count, helper_capacity;
	uint8_t *in_trial; /* by node of the ranges */
	size_t node_count;
	uint8_t *in_tuner; /* by XT_STACK_ID: made by code that makes trials */
	size_t stack_count;
};

/* The kind of a node of the ranges, for xla_tuning_index(). */
enum tuning_kind {
	TUNING_OTHER,
	TUNING_COMPILE, /* a compilation, with any passes in it */
	TUNING_PASS,
	TUNING_TRIAL,
	TUNING_KINDS
};

/*
 * Finds passes and helpers, and adds nodes to the ranges for their work. kinds: enum tuning_kind by
 * node. in_trial must be set. Call it after ranges_index() and before xla_tuning_range().
 */
void xla_tuning_index(struct xla_tuning *tuning, struct ranges *ranges, const uint8_t *kinds);
void xla_tuning_free(struct xla_tuning *tuning);

/*
 * Returns the node for a call whose own range is given: own nested in the range of a pass, or own
 * if it is not known to be the tuner's.
 */
uint32_t xla_tuning_range(const struct xla_tuning *tuning, const struct ranges *ranges,
			  const struct range_call *call, uint32_t own);

#endif
