/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One full walk of a call stack by libunwind, together with everything it depended on.
 *
 * libunwind's generic interface is driven with accessors of our own, so that every word of the
 * stack and every register the walk reads passes through our hands. These *inputs* are what makes
 * the verified stack cache exact: the walk is a function of them (and of the unwind tables, which stand
 * still while no library is loaded), so where all inputs are equal again, in the order in which
 * they were read, the frames are the same, whatever rules found them.
 *
 * Module lookup is _dl_find_object(), which takes no lock (before glibc 2.35 there is only
 * dl_iterate_phdr(), which takes one for a moment); no cache of libunwind's own is used. Runs in the application's threads, but only for stacks not seen before: it may
 * make system calls, and libunwind takes memory from a pool of its own, under a mutex and with
 * signals blocked.
 */
#ifndef XT_INJECT_STACK_WALK_H
#define XT_INJECT_STACK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/runtime/trampoline.h"
#include "xtrace/crash_buffer_format.h"
#include "xtrace/log_format.h"

/* How far above the callback a stack is looked at as such; what is farther is walked each time. */
#define WALK_STACK_BYTES (UINT16_MAX * sizeof(uint64_t))
#define WALK_INPUTS_MAX	 (2 * XT_STACK_FRAMES_MAX)

struct walk_input {
	uintptr_t address; /* of the word; registers count as their slot in struct caller_regs */
	uint64_t value;
};

#define WALK_MODULES_MAX 256 /* in one stack */

/* A module as the loader knows it. What the name points to is there as long as the module is. */
struct walk_module {
	uintptr_t start, end; /* of what is mapped */
	uintptr_t bias;
	uintptr_t eh_frame_hdr; /* 0: it has none */
	const char *name;
	uint16_t slot; /* not the walk's: see stack_modules.h */
};

#define UNWIND_INFO_WORDS 32 /* room for libunwind's description of one function's tables */

/* The result of a walk, and its working memory; too large for a small stack. One per thread. */
struct stack_walk {
	uint64_t frames[XT_STACK_FRAMES_MAX]; /* innermost first, XT_FRAME_* */
	uintptr_t
		stack_pointers[XT_STACK_FRAMES_MAX]; /* each frame lies between its and the next */
	uint16_t frame_modules[XT_STACK_FRAMES_MAX]; /* in modules; 0: the frame lies in none */
	uint32_t frame_count;
	uint32_t flags; /* enum xt_stack_flag */
	uint64_t frames_hash;
	struct walk_module modules[WALK_MODULES_MAX]; /* those that frames lie in, from 1 on */
	uint32_t module_count;			      /* with the first, which is none */
	struct walk_input inputs[WALK_INPUTS_MAX];
	uint32_t input_count;
	bool inputs_complete; /* false: not all inputs could be kept, do not memoise */

	/* Private to the walk. */
	const struct caller_regs *regs;
	const struct walk_module *tables; /* the module whose unwind tables are being read */
	uintptr_t readable_page;
	uint64_t unwind_info[UNWIND_INFO_WORDS]; /* of the frame being stepped over */
	uint64_t cursor[160];			 /* unw_cursor_t */
};

/* Opens libunwind, privately, from library_dir/xtrace or else from the loader's path. 0 or
 * -errno (-ENOENT: not found, *why says where it was looked for). Once, at start-up. May be
 * undone by stack_walk_close() as long as no walk was made. */
int stack_walk_open(const char *library_dir, char *why, size_t why_bytes);
void stack_walk_close(void);

/* Makes the open libunwind ready; it opens a pipe then, for good, that walks like ours never use.
 * Once, before the first walk. 0 or -ENOMEM. */
int stack_walk_begin(void);

/* Looks modules up as with an older glibc, for tests. Set before stack_walk_open(). */
extern bool stack_walk_ask_loader;

/* Can the page be read? By a system call; errno is not kept. */
bool stack_walk_can_read(uintptr_t page);

/* Walks the stack of the caller of the callback. Always gives at least one frame. */
void stack_walk(struct stack_walk *walk, const struct caller_regs *regs);

#endif
