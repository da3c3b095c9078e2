/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a function on another stack. A program may launch on a stack of a few kilobytes, most of
 * which the driver uses. A stack walk needs three kilobytes.
 */
#ifndef XT_INJECT_CALL_ON_STACK_H
#define XT_INJECT_CALL_ON_STACK_H

/*
 * Calls work(argument) on the stack that ends at `top` (aligned to 16 bytes). Asynchronous signals
 * are blocked meanwhile, because a handler could need more stack or look for the thread's own.
 * Faults are not blocked. If the signal mask cannot be changed, calls work() on the caller's stack.
 * Any thread. Makes two system calls. Keeps errno.
 */
void call_on_stack(void *top, void (*work)(void *argument), void *argument);

#endif
