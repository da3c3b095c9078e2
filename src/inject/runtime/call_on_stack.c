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

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* Synchronous signals. If one of these is raised while blocked, the kernel kills the process. */
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS))

/* Keeps the caller's stack pointer in rbp, so that unwinders find the caller. */
void xt_switch_stack(void *top, void (*work)(void *argument), void *argument);
__asm__(".pushsection .text, \"ax\", @progbits\n"
	".globl xt_switch_stack\n"
	".hidden xt_switch_stack\n"
	".type xt_switch_stack, @function\n"
	"xt_switch_stack:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %rbp, 0\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	mov %rdi, %rsp\n"
	"	mov %rdx, %rdi\n"
	"	call *%rsi\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size xt_switch_stack, .-xt_switch_stack\n"
	".popsection\n");

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
