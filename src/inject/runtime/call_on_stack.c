/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches stacks. Uses raw system calls because the kernel's signal sets are small; see
 * signal_guard.h.
 */
#include "inject/runtime/call_on_stack.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/runtime/machine.h"

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* Synchronous signals. If one of these is raised while blocked, the kernel kills the process. */
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS))

void xt_switch_stack(void *top, void (*work)(void *argument), void *argument);
SWITCH_STACK(xt_switch_stack);

void call_on_stack(void *top, void (*work)(void *argument), void *argument)
{
	uint64_t held = ~FAULTS, before;
	int saved_errno = errno;

	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held, &before, sizeof(held))) {
		work(argument);
	} else {
		xt_switch_stack(top, work, argument);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	}
	errno = saved_errno;
}
