/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells allocations that failed for good from those that an allocator retries. PyTorch's allocator
 * frees its cached memory when an allocation fails, and calls the same function again.
 *
 * An allocation has failed for good if its thread then launches or copies something, or does not
 * retry within a second. Time in other calls, such as frees and waits, does not count. Writer
 * thread only.
 */
#ifndef XT_INJECT_ALLOCATION_RETRY_H
#define XT_INJECT_ALLOCATION_RETRY_H

#include <stdbool.h>

#include "inject/capture/thread_buffer.h"

/* A call of this thread ended. Returns whether it shows that the program has no memory. */
bool allocation_retry_call(struct thread_buffer *tb, const struct xt_record_call *record);

/* Whether a thread has not retried in time. In each round, after the rings were drained. */
bool allocation_retry_is_over(uint64_t now_ns);

#endif
