/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a function on another stack. A program may launch on a stack of a few kilobytes, of which
 * the driver leaves little, and a stack walk needs three of them.
 */
#ifndef XT_INJECT_CALL_ON_STACK_H
#define XT_INJECT_CALL_ON_STACK_H

/*
 * Calls work(argument) on the stack below top (aligned to 16 bytes). Meanwhile no signal handler
 * runs: it could need more stack than there is, or look for the thread's own. Faults are not held
 * back. Where the mask cannot be changed, it calls work() on the caller's stack. Any thread; makes
 * two system calls; keeps errno.
 */
void call_on_stack(void *top, void (*work)(void *argument), void *argument);

#endif
