/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of the injected library: CUPTI's side of callbacks, a reader of the calling
 * thread's ring, folders and logs.
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
/* Inlined, because frame 0 of a recorded stack must be the test's function. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* One API call as CUPTI reports it. */
struct fake_call {
	struct cupti_callback_data data;
	int32_t result;
	uint64_t slot;
};

extern _Atomic uint32_t fake_correlation_ids; /* the last one used */

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

/*
 * Opens libunwind, finds the loader's counter and enables callbacks. 0, or -1 with a line on
 * stderr.
 */
int callbacks_set_up(void);

/* A call record and the stack of its slot at that time. */
#define TAKEN_FRAMES_MAX 64
struct taken_call {
	uint32_t correlation_id;
	uint32_t stack_slot;
	uint32_t flags;
	uint32_t frame_count;
	uint64_t frames[TAKEN_FRAMES_MAX]; /* innermost first */
};

/* Takes the next call from the calling thread's ring; false if there is none. */
bool ring_take(struct taken_call *call);

/* Drops everything in the ring. */
void ring_skip(void);

/* Creates a folder; folder_remove() deletes it with its contents. */
void folder_make(char path[PATH_MAX]);
void folder_remove(const char *path);

/*
 * Runs the independent reader with up to three arguments (NULL: none) and returns its exit status.
 * `output` gets its output.
 */
int dump(const char *argument1, const char *argument2, const char *argument3, char *output,
	 size_t output_bytes);

/* Fails the test, with the dumper's output, unless the log is valid. */
void assert_log_is_good(const char *path);

/* The last value of an account in a log; 0 if there is none. */
uint64_t log_account(const char *path, const char *name);

/* The number of rows of a kind in a log. */
uint64_t log_rows(const char *path, enum xt_kind kind);

/* The number of rows of a kind with 0 in a column: a missing text, stack or thread. */
uint64_t log_zeros(const char *path, enum xt_kind kind, unsigned column);

/* The number of modules whose path contains `part`. */
uint64_t log_modules_named(const char *path, const char *part);

#endif
