/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the injected library share: the part of CUPTI that makes callbacks, a reader
 * of the calling thread's ring, and folders and logs to work with.
 */
#ifndef TESTS_UNIT_INJECT_SUPPORT_H
#define TESTS_UNIT_INJECT_SUPPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "inject/capture/callbacks.h"
#include "inject/capture/thread_buffer.h"

#define NOINLINE __attribute__((noinline))
/* Frame 0 of a recorded stack is the function that calls the callback: it must be the test's. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* One API call as CUPTI reports it. */
struct fake_call {
	struct cupti_callback_data data;
	int32_t result;
	uint64_t slot;
};

extern _Atomic uint32_t fake_correlation_ids; /* the last one that was given out */

ALWAYS_INLINE void fake_enter(struct fake_call *call)
{
	memset(call, 0, sizeof(*call));
	call->data.site = XT_CUPTI_API_ENTER;
	call->data.correlation_data = &call->slot;
	call->data.correlation_id = ++fake_correlation_ids;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel,
		       &call->data);
}

ALWAYS_INLINE void fake_leave(struct fake_call *call)
{
	call->data.site = XT_CUPTI_API_EXIT;
	call->data.return_value = &call->result;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel,
		       &call->data);
}

/* Opens libunwind and finds the loader's counter, as the library does when it starts, and lets
 * callbacks record. 0, or -1 with a line on stderr. */
int callbacks_set_up(void);

/* A call as it stands in the ring, with the stack that its slot had then. */
#define TAKEN_FRAMES_MAX 64
struct taken_call {
	uint32_t correlation_id;
	uint32_t stack_slot;
	uint32_t flags;
	uint32_t frame_count;
	uint64_t frames[TAKEN_FRAMES_MAX]; /* innermost first */
};

/* Takes the next call out of the calling thread's ring; false when there are no more. */
bool ring_take(struct taken_call *call);

/* Takes and forgets whatever is there. */
void ring_skip(void);

/* A fresh folder; removed with all that is in it by folder_remove(). */
void folder_make(char path[PATH_MAX]);
void folder_remove(const char *path);

/* Runs the independent reader of logs and crash buffers with up to three arguments (NULL: none); its exit
 * status. What it prints goes to output, of output_bytes. */
int dump(const char *argument1, const char *argument2, const char *argument3, char *output,
	 size_t output_bytes);

/* Fails the test, with what the dumper has to say, unless it finds the log good. */
void assert_log_is_good(const char *path);

/* The value of an account in a log, as it was last written; 0 if it has none. */
uint64_t log_account(const char *path, const char *name);

/* How many rows of a kind are in a log. */
uint64_t log_rows(const char *path, enum xt_kind kind);

/* How many rows of a kind have 0 in a column: a text, a stack, a thread that is not known. */
uint64_t log_zeros(const char *path, enum xt_kind kind, unsigned column);

/* How many modules have that in their path. */
uint64_t log_modules_named(const char *path, const char *part);

#endif
