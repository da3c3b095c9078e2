/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a log did before each call: when their last one returned, and when they
 * waited for the GPU last. The calls of a thread come in the order in which they returned.
 */
#ifndef XT_MERGE_THREADS_H
#define XT_MERGE_THREADS_H

#include "merge/correlate.h"
#include "merge/model.h"

enum wait_kind { WAIT_NONE, WAIT_SYNC, WAIT_COPY };

struct threads {
	struct thread_past *pasts; /* by XT_THREAD_ID; 0 is those that the log does not know */
	size_t count;
	uint8_t *waits; /* enum wait_kind by place in the model's apis */
};

/* 0 or -ENOMEM; threads_free() in any case. */
int threads_init(struct threads *threads, const struct model *model);
void threads_free(struct threads *threads);

/* Does the CPU wait for the GPU in that API? All of class SYNC, and copies that are not Async. */
static inline enum wait_kind threads_wait(const struct threads *threads, uint16_t api)
{
	return (enum wait_kind)threads->waits[api];
}

/* Fills in what the thread did before the call, and takes note of the call. */
void threads_note(struct threads *threads, struct launch *call, uint64_t exit_ns);

#endif
