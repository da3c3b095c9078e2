/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of a thread's stack, which /proc does not show: mappings of several stacks may be one,
 * guard pages may be inside, and the program may have given a part of its own memory.
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
