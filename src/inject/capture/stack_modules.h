/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module of each frame of a stack, at the time of the walk.
 *
 * A plugin may be unloaded and replaced at the same addresses a moment later. Only while a frame is
 * on the stack is its module certain to stay loaded. So the thread identifies the modules itself,
 * once per new stack. A stack record refers to modules by slots of its ring; a slot is defined by
 * its own record at first use.
 *
 * One table per thread buffer, used by its owner on the cold path: no lock, no malloc. If a
 * module's headers are not at its start, takes the loader's list lock briefly.
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
 * Caches modules by address while nothing is loaded: the loader increments its count before it runs
 * a library's code. `end` and `name` matter if that count is only polled.
 */
struct recent_module {
	uintptr_t start, end;
	const char *name;
	uint64_t generation;
	uint16_t slot;
};

struct stack_modules {
	uint64_t identities[XT_MODULE_SLOT_COUNT]; /* by slot: hash of address and contents */
	uint16_t slots[MODULE_SLOTS_HASHED];	   /* hash table of identities; 0: free */
	uint32_t slot_count;			   /* slots 1 to slot_count are defined */
	struct recent_module recent[1 << MODULES_RECENT_BITS]; /* by hash of the start address */
};

struct thread_buffer;

/*
 * Defines slots for all modules of the thread buffer's walk and stores them in walk_module.slot.
 * `generation`: the loader's, from before the walk. False if the ring has no room for a definition.
 */
bool stack_modules_define(struct thread_buffer *tb, uint64_t generation);

/* Forgets all slots. */
void stack_modules_clear(struct stack_modules *modules);

#endif
