/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which module each frame of a stack lies in, as it was when the stack was walked.
 *
 * A plugin may be gone a moment later, and another one be at its addresses: what was mapped there can
 * be known for certain only while the frames are on the stack, since code that is to be returned to is
 * not unloaded. So the thread itself looks, once for each new stack, and a stack says of each frame
 * in which module slot of its ring it lies. Slots are defined by records of their own, where
 * they are first used.
 *
 * One table per thread buffer, used by the thread that has it, on the cold path: no lock, no malloc, but for
 * modules whose headers are not where headers are, which costs a moment under the loader's list lock.
 */
#ifndef XT_INJECT_STACK_MODULES_H
#define XT_INJECT_STACK_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/unwind/stack_walk.h"
#include "xtrace/crash_buffer_format.h"

#define MODULE_SLOTS_HASHED (2 * XT_MODULE_SLOT_COUNT)
#define MODULES_RECENT_BITS 6

/*
 * While nothing is loaded, there is the same module at the same place: the loader counts up before it runs
 * anything of a library. (end and name are for where its count is only asked for now and then.)
 */
struct recent_module {
	uintptr_t start, end;
	const char *name;
	uint64_t generation;
	uint16_t slot;
};

struct stack_modules {
	uint64_t identities[XT_MODULE_SLOT_COUNT]; /* by slot: where and what it is, as a hash */
	uint16_t slots[MODULE_SLOTS_HASHED];	   /* by hash of that; 0: free */
	uint32_t slot_count;			   /* 1 … slot_count are defined */
	struct recent_module recent[1 << MODULES_RECENT_BITS]; /* by hash of the start */
};

struct thread_buffer;

/*
 * Sees to it that slots are defined for all modules of the thread buffer's walk, and notes them in it
 * (walk_module.slot). generation: the loader's from before the walk. False if there was no room in the ring
 * for a definition.
 */
bool stack_modules_define(struct thread_buffer *tb, uint64_t generation);

/* Forgets all slots. */
void stack_modules_clear(struct stack_modules *modules);

#endif
