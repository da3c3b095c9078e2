/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a job on the virtual clock, and writes the logs of its ranks and the truth as it goes.
 *
 * A collective starts on each rank when the rank's compute before it is done and its stream is
 * free. It ends after the last start and the transfer. The compute stream waits for it at a join,
 * and the CPU waits for the compute stream at the end of each step. So lateness propagates.
 */
#ifndef XT_TESTS_RANKS_RUN_H
#define XT_TESTS_RANKS_RUN_H

#include "job.h"
#include "rank_log.h"
#include "truth.h"

/* The time of what never happens, because a rank hangs. */
#define NEVER UINT64_MAX

struct rank_state {
	uint64_t random;
	uint64_t correlation;
	uint64_t cpu_ns;
	uint64_t free_ns[STREAM_COUNT]; /* end of the last work of each stream */
	uint64_t graph_ns;		/* call that launched the graph of this step; 0: none */
	uint64_t graph_correlation;	/* of this call, if it has not returned; 0: none */
	uint64_t waits_until_ns;	/* the last rank came to the collectives so far */
	bool is_stopped;		/* launches nothing any more */
	struct launch launch;		/* of the current operation */
	bool has_launched;
};

/*
 * Runs all steps. logs: one for each rank, open or missing. truth: NULL if not wanted. Returns the
 * end of the run, or 0 if out of memory.
 */
uint64_t run_job(struct job *job, struct rank_log *logs, struct truth *truth);

#endif
