/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are not recorded: recording is paused or stopped, or the process ends.
 *
 * CUPTI's correlation data marks such a call between ENTER and EXIT. Kinds of records must not
 * change during a call that makes GPU work, so it is a holder of graph_level.h. These functions run
 * in callbacks of calls.
 */
#ifndef XT_INJECT_SKIPPED_CALLS_H
#define XT_INJECT_SKIPPED_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "inject/capture/thread_buffer.h"
#include "inject/runtime/process.h"

/* Skipped on request, with flags, or dropped because the process ends, which counts as a loss. */
#define CALL_IS_SKIPPED	      UINT64_C(0x78747261636520)
#define CALL_IS_UNRECORDED    1 /* the writer does not know its id yet */
#define CALL_HOLDS	      2 /* thread_buffer.call_hold is its own */
#define CALL_IS_SHUTDOWN_DROP UINT64_C(0x7874726163653f)

/* ENTER, while recording is paused. use: enum api_use. May wait for a change of kinds. */
void skipped_call_enter(struct thread_buffer *tb, uint32_t use,
			const struct cupti_callback_data *data);

/* A thread that reads its own mark has acquired recording_was_paused in skipped_call_enter(). */
static inline bool skipped_call_is_marked(const struct cupti_callback_data *data)
{
	return __builtin_expect(atomic_load_explicit(&recording_was_paused, memory_order_relaxed),
				0) &&
	       data->correlation_data &&
	       (*data->correlation_data & ~(uint64_t)(CALL_IS_UNRECORDED | CALL_HOLDS)) ==
		       CALL_IS_SKIPPED;
}

/* EXIT of a marked call. */
void skipped_call_leave(struct thread_buffer *tb, const struct cupti_callback_data *data);

/* A call that is recorded may have the correlation data of an earlier one. */
static inline void skipped_call_clear_mark(const struct cupti_callback_data *data)
{
	if (__builtin_expect(atomic_load_explicit(&recording_was_paused, memory_order_relaxed),
			     0) &&
	    data->correlation_data)
		*data->correlation_data = 0;
}

/* EXIT without a known ENTER. True if the call began before its callbacks were enabled. */
bool skipped_call_began_unseen(struct thread_buffer *tb, const struct cupti_callback_data *data);

/* Counts any other EXIT without a known ENTER. */
void skipped_call_count_unmatched(struct thread_buffer *tb, const struct cupti_callback_data *data);

#endif
