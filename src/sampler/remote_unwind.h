/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the native stack of a thread of another process with libunwind. Unwind tables come from the
 * mapped files, stack words from a copy of the stack. Sampler thread only.
 *
 * /proc gives only the instruction and stack pointers of a blocked thread. If a frame needs RBP
 * and no inner frame saved it, the walk computes the frame's size from the function's prologue and
 * accepts the result only if a call precedes the return address. Otherwise it ends: a short stack
 * is better than a wrong one.
 */
#ifndef XT_SAMPLER_REMOTE_UNWIND_H
#define XT_SAMPLER_REMOTE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/perf_events.h"
#include "sampler/process_modules.h"
#include "xtrace/log_format.h"

struct native_stack {
	uint32_t frame_count;
	uint32_t flags;			      /* enum xt_stack_flag: XT_STACK_TRUNCATED */
	uint64_t frames[XT_STACK_FRAMES_MAX]; /* innermost first, with XT_FRAME_* kinds */
	uint64_t stack_pointers
		[XT_STACK_FRAMES_MAX]; /* each frame is between its own and the next */
};

struct stack_copy {
	uint64_t address; /* of its first byte */
	const uint8_t *bytes;
	size_t byte_count;
	/*
	 * The thread has not run since, so words beyond the copy may be read from the process. The
	 * caller discards the walk if the thread ran meanwhile. Otherwise the walk ends there.
	 */
	bool is_live;
};

/* Opens libunwind from library_dir/xtrace or the loader's path. 0 or -errno with *why. Once. */
int remote_unwind_open(const char *library_dir, char *why, size_t why_bytes);

/*
 * Walks from the registers outward. At least one frame unless RIP is unknown. Refreshes *modules
 * once if an address is in no known module, at most ten times a second on average. The result is
 * the whole stack, or its inner part with the flag XT_STACK_TRUNCATED.
 */
void remote_unwind(struct native_stack *out, struct process_modules *modules, pid_t pid,
		   const struct thread_registers *registers, const struct stack_copy *stack);

void remote_unwind_close(void);

#endif
