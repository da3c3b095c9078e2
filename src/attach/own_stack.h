/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the bounds of a thread's stack. /proc does not show them: one mapping may contain several
 * stacks and guard pages, and the program may have provided a part of its own memory.
 */
#ifndef XT_ATTACH_OWN_STACK_H
#define XT_ATTACH_OWN_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The lowest usable address of the stack that the C library knows for a thread, but not for the
 * main thread. thread_block: its FS base. False if the stack pointer is elsewhere, or if this C
 * library keeps the bounds in another way.
 */
bool own_stack_find(pid_t pid, uint64_t thread_block, uint64_t stack_pointer, uint64_t *lowest);

#endif
