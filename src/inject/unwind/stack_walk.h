/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a call stack with libunwind and records everything the result depends on.
 *
 * libunwind reads memory and registers through our accessors, which note each word read. These
 * *inputs* make the stack cache exact. The frames are a function of the inputs and of the unwind
 * tables, which change only when a library is loaded. If all inputs are equal again, in the order
 * they were read, the frames are the same.
 *
 * Runs in the program's threads, for stacks not seen before. May make system calls. libunwind
 * allocates from its own pool, under a mutex with signals blocked. Modules are found by
 * _dl_find_object(), which takes no lock (glibc before 2.35: dl_iterate_phdr(), which does).
 */
#ifndef XT_INJECT_STACK_WALK_H
#define XT_INJECT_STACK_WALK_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/runtime/machine.h"
#include "xtrace/crash_buffer_format.h"
#include "xtrace/log_format.h"

/*
 * The part of the stack above the callback that can be cached. A walk that reads beyond it is
 * repeated each time.
 */
#define WALK_STACK_BYTES (UINT16_MAX * sizeof(uint64_t))
#define WALK_INPUTS_MAX	 (2 * XT_STACK_FRAMES_MAX)

struct walk_input {
	uintptr_t address; /* of the word; of a register: of its slot in struct caller_regs */
	uint64_t value;
};

#define WALK_MODULES_MAX 256 /* in one stack */

/* A module as the loader knows it. `name` is valid until the module is unloaded. */
struct walk_module {
	uintptr_t start, end; /* the mapped range */
	uintptr_t bias;
	uintptr_t eh_frame_hdr; /* 0: none */
	const char *name;
	uint16_t slot; /* set by stack_modules_define() */
};

#define WALK_SIGNED_RETURNS_MAX 64 /* in a function; see signed_returns_find() */
#define UNWIND_INFO_WORDS	32 /* libunwind's description of one function */

/* The result of a walk and its working memory; too large for a small stack. One per thread. */
struct stack_walk {
	uint64_t frames[XT_STACK_FRAMES_MAX]; /* innermost first, XT_FRAME_* */
	uintptr_t stack_pointers
		[XT_STACK_FRAMES_MAX]; /* each frame is between its own and the next */
	uint16_t frame_modules[XT_STACK_FRAMES_MAX]; /* index into modules; 0: in no module */
	uint32_t frame_count;
	uint32_t flags; /* enum xt_stack_flag */
	uint64_t frames_hash;
	struct walk_module modules[WALK_MODULES_MAX]; /* modules of the frames, from index 1 on */
	uint32_t module_count;			      /* including the unused index 0 */
	struct walk_input inputs[WALK_INPUTS_MAX];
	uint32_t input_count;
	bool inputs_complete; /* false: do not cache, some inputs did not fit */

	/* Private to the walk. */
	const struct caller_regs *regs;
	const struct walk_module *tables; /* the module whose unwind tables libunwind reads now */
	uintptr_t readable_page, readable_code_page;
	uintptr_t ip;					   /* of the frame being unwound */
	uintptr_t signed_returns[WALK_SIGNED_RETURNS_MAX]; /* in its unwind tables */
	size_t signed_return_count;
	uint64_t unwind_info[UNWIND_INFO_WORDS]; /* of the frame being unwound */
	uint64_t cursor[MACHINE_CURSOR_WORDS];	 /* unw_cursor_t */
};

/*
 * Opens libunwind privately, from library_dir/xtrace or else the loader's path. 0 or -errno; `why`
 * then says where it was searched for. Once, at start-up. stack_walk_close() undoes it if no walk
 * was made.
 */
int stack_walk_open(const char *library_dir, char *why, size_t why_bytes);
void stack_walk_close(void);

/*
 * Prepares the open libunwind, before the first walk. It opens a pipe that stays open; our walks
 * never use it. 0 or -ENOMEM.
 */
int stack_walk_begin(void);

/* For tests: look up modules as with an older glibc. Set before stack_walk_open(). */
extern bool stack_walk_without_find_object;

/* Whether the page can be read. Makes a system call; does not keep errno. */
bool stack_walk_can_read(uintptr_t page);

/* Walks the stack of the callback's caller. Returns at least one frame. */
void stack_walk(struct stack_walk *walk, const struct caller_regs *regs);

/*
 * Functions that sign their return address (pointer authentication of aarch64).
 *
 * Their unwind tables have the instruction DW_CFA_AARCH64_negate_ra_state, or its form _with_pc.
 * libunwind before 1.8 rejects it, so that it cannot unwind such a function at all. The walk
 * removes signatures from all words that it reads, so for libunwind the instruction is a
 * DW_CFA_nop. Any thread; no state.
 *
 * Finds these instructions among the call frame instructions of a function. Stores the address of
 * each, up to `count_max`, and returns their number. Stops at an instruction that it does not know.
 * libunwind ends the walk at one that is not found, if it is before the frame's address.
 */
size_t signed_returns_find(const uint8_t *instructions, size_t byte_count, uintptr_t *addresses_out,
			   size_t count_max);

/* Replaces those of the instructions that are in the word read at an address by DW_CFA_nop. */
void signed_returns_hide(const uintptr_t *addresses, size_t count, uintptr_t address,
			 uint64_t *word);

/*
 * A program may launch on a stack of a few kilobytes, most of which the driver uses. A stack walk
 * needs three kilobytes.
 *
 * Calls work(argument) on the stack that ends at `top` (aligned to 16 bytes). Asynchronous signals
 * are blocked meanwhile, because a handler could need more stack or look for the thread's own.
 * Faults are not blocked. If the signal mask cannot be changed, calls work() on the caller's stack.
 * Any thread. Makes two system calls. Keeps errno.
 */
void call_on_stack(void *top, void (*work)(void *argument), void *argument);

/* A mapped module, as its program headers and notes describe it. */
struct module_image {
	uint64_t start, end; /* [start, end): from the first to the last mapped byte */
	uint64_t bias;	     /* address - bias = ELF virtual address */
	uint32_t build_id_bytes;
	uint8_t build_id[XT_MODULE_BUILD_ID_MAX];
};

/*
 * Describes the module that has these program headers, which must be mapped. False if no segment is
 * mapped. Any thread; no lock, no malloc.
 */
bool module_image_read(struct module_image *image, uint64_t bias, const ElfW(Phdr) * headers,
		       size_t header_count);

bool module_image_is_same(const struct module_image *a, const struct module_image *b);

#endif
