/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The truth file: what happened in a job, in true time, as JSON.
 *
 * - scenario, seed, layout, stacks, steps, payloads, graphs, end_ns, end_without_fault_ns (with
 *   the same jitter)
 * - collectives[]: communicator, index (in it), operation, bytes (NCCL's message size), step (-1:
 *   before the first), and lists by rank of the communicator: enter_ns of the call, start_ns,
 *   end_ns (null: never). Ranks without a log are included
 * - hosts[]: host, offset_ns (realtime - true time at true time 0), drift_ppm (of both clocks),
 *   boot_ns (monotonic time at true time 0)
 * - communicators[]: id, ranks
 * - ranks[]: rank, host, log ("": missing), from_ns and until_ns (null: the end; the log has
 *   only the calls between, and their work), and the number of its calls, kernels and copies
 * - verdict: kind, rank, communicator (of a slow link; null: all links), where[] (one of these
 *   frames is expected: pauses have several)
 * - fault: rank (-1: none or several), step, steps, extra_ns, factor (of slow transfers)
 * - mismatches[]: communicator, index, what, rank, values (the others', then the rank's)
 * - unfinished[]: communicator, index, operation, present and absent (ranks)
 */
#ifndef XT_TESTS_RANKS_TRUTH_H
#define XT_TESTS_RANKS_TRUTH_H

#include <stdio.h>

#include "job.h"

/* A rank's part in a collective. */
struct arrival {
	bool has_launched, is_fault;
	uint64_t enter_ns, start_ns, end_ns; /* start and end may be NEVER */
};

struct truth {
	FILE *file; /* NULL: none is written */
	const struct job *job;
	bool has_collectives; /* else only what is known before the run */
	uint32_t count;
	uint64_t end_without_fault_ns;
	/* Instances with a fault, to be listed at the end. */
	char *mismatches, *unfinished;
	size_t mismatches_bytes, unfinished_bytes;
	FILE *mismatches_file, *unfinished_file;
};

struct rank_log;

/* Returns 0 or -errno. Close it with truth_close(). */
int truth_open(struct truth *truth, const struct job *job, const char *path, bool has_collectives);
/* arrivals: of the communicator's ranks, in order. step: UINT32_MAX for init. */
void truth_add(struct truth *truth, const struct communicator *communicator, uint32_t step,
	       uint32_t op, const struct arrival *arrivals);
/* Adds what is known after the run, and closes the file. Returns 0 or -errno. */
int truth_close(struct truth *truth, const struct rank_log *logs, uint64_t end_ns);

#endif
