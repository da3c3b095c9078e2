/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher thread: asks CUPTI for finished records every 50 ms, and the driver and CUPTI for
 * what else is to be known. It is the only thread of the tracer that may hang in a call of theirs.
 */
#ifndef XT_INJECT_FLUSHER_H
#define XT_INJECT_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>

#define GPUS_MAX       64
#define GPU_NAME_BYTES 128
#define GPU_UUID_BYTES 16

struct gpu_names {
	uint32_t count;
	char names[GPUS_MAX][GPU_NAME_BYTES];
	int multiprocessors[GPUS_MAX]; /* 0: not known */
	uint8_t uuids[GPUS_MAX]
		     [GPU_UUID_BYTES]; /* of a MIG instance: its own; all zeros: not known */
};

/* The body of the thread; returns after flusher_stop() and a last, forced flush. */
void *flusher_main(void *unused);

/* Flushes from now on; before, CUPTI may not be set up. */
void flusher_allow(void);

/* On the thread itself: asks CUPTI for its records; flag: enum xt_cupti_flush. */
void flusher_flush(uint32_t flag);

/* Has the thread do something that may hang; waits for it at most so long. False if it did not get
 * done in that time, or never will be. One caller at a time. */
bool flusher_run(void (*work)(void), uint64_t patience_ns);

/* Asks the thread to end. */
void flusher_stop(void);

/* CUPTI has given out all it had, or was never allowed to be asked. */
bool flusher_is_done(void);

/* NULL until the driver has told. Static. */
const struct gpu_names *flusher_gpu_names(void);

/* CPU time of the thread, as of its last flush. */
uint64_t flusher_cpu_ns(void);

/* Records that CUPTI says it dropped, so far. */
uint64_t flusher_dropped_records(void);

#endif
