/* SPDX-License-Identifier: Apache-2.0 */
/* See stub.h. Position independent; never runs in this program. */
#include "attach/stub.h"

#define SYS_mmap	   9
#define SYS_mprotect	   10
#define SYS_munmap	   11
#define SYS_rt_sigaction   13
#define SYS_rt_sigprocmask 14
#define SYS_rt_sigreturn   15
#define SYS_rt_sigpending  127
#define SYS_setpriority	   141
#define SYS_sched_setscheduler 144
#define SYS_sched_setaffinity 203

#define SIG_SETMASK    2
#define SIG_IGN	       1
#define SA_RESTART     0x10000000
#define EINTR	       4
#define RTLD_NOW       2
#define PROT_READ_WRITE 3
/* MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE */
#define MAP_FLAGS      0x104022
#define MAPPED_BYTES   (STUB_BLOCK_BYTES + STUB_GUARD_BYTES + STUB_STACK_BYTES)

/* Below r14, in the red zone. */
#define PENDING	       -8
#define ACTION	       -64 /* the kernel's struct sigaction: handler, flags, … */

	.section .rodata.xt_stub, "a", @progbits
	.balign 16
	.globl xt_stub_begin, xt_stub_entry, xt_stub_end
	.hidden xt_stub_begin, xt_stub_entry, xt_stub_end

xt_stub_begin:
	.quad STUB_MAGIC
/* All but SIGSETXID (33): setuid() in another thread waits until every thread has handled it. */
mask:	.quad 0xfffffffeffffffff
/* Nor those that an instruction raises: the kernel would end the process. */
worker_mask: .quad 0xfffffffebffffb27
mxcsr:	.long 0x1f80

/* The worker inherits the floating-point modes; the program's may raise exceptions. */
xt_stub_entry:
	cld
	fninit
	ldmxcsr mxcsr(%rip)
	movl $SYS_rt_sigprocmask, %eax
	movl $SIG_SETMASK, %edi
	leaq mask(%rip), %rsi
	xorl %edx, %edx
	movl $8, %r10d
	syscall

	movl $SYS_mmap, %eax
	movq %r12, %rdi
	movl $MAPPED_BYTES, %esi
	movl $PROT_READ_WRITE, %edx
	movl $MAP_FLAGS, %r10d
	movq $-1, %r8
	xorl %r9d, %r9d
	syscall
	cmpq %r12, %rax
	je mapped
	cmpq $-4096, %rax
	ja finish
	/* A kernel before 4.17 takes the address for a hint. */
	movq %rax, %rdi
	movl $MAPPED_BYTES, %esi
	movl $SYS_munmap, %eax
	syscall
	jmp finish

mapped:
	movl $SYS_mprotect, %eax
	leaq STUB_BLOCK_BYTES(%r12), %rdi
	movl $STUB_GUARD_BYTES, %esi
	xorl %edx, %edx
	syscall
	movq %r12, %rdi
	movq %r13, %rsi
	movq %r15, %rcx
	rep movsb
	leaq MAPPED_BYTES(%r12), %rsp
	movl $STUB_IS_STARTED, STUB_STATE(%r12)
	call *STUB_ERRNO(%r12)
	movq %rax, %rbp
	movl (%rax), %r13d
	/* The program's default size may be too small for the loader. */
	subq $STUB_ATTR_BYTES, %rsp
	movq %rsp, %rdi
	call *STUB_ATTR(%r12)
	testl %eax, %eax
	jnz created
	movq %rsp, %rdi
	movq STUB_STACK(%r12), %rsi
	call *STUB_SIZE(%r12)
	testl %eax, %eax
	jnz created
	leaq STUB_THREAD(%r12), %rdi
	movq %rsp, %rsi
	leaq worker(%rip), %rdx
	movq %r12, %rcx
	call *STUB_CREATE(%r12)
created:
	movl %r13d, (%rbp)
	testl %eax, %eax
	jnz no_thread
	movq STUB_THREAD(%r12), %rdi
	call *STUB_DETACH(%r12)
	jmp unmap_stack
no_thread:
	movl %eax, STUB_ERROR(%r12)
	movl $STUB_HAS_NO_THREAD, STUB_STATE(%r12)
unmap_stack:
	movq %r14, %rsp
	leaq STUB_BLOCK_BYTES(%r12), %rdi
	movl $(STUB_GUARD_BYTES + STUB_STACK_BYTES), %esi
	movl $SYS_munmap, %eax
	syscall

/* A signal that came meanwhile interrupts the system call as it would have without the stub. */
finish:
	movq %r14, %rsp
	movl $SYS_rt_sigpending, %eax
	leaq PENDING(%r14), %rdi
	movl $8, %esi
	syscall
	movq STUB_UC_MASK(%r14), %r13
	notq %r13
	andq PENDING(%r14), %r13
next_signal:
	bsfq %r13, %rbp
	jz restart
	btrq %rbp, %r13
	leal 1(%rbp), %edi
	xorl %esi, %esi
	leaq ACTION(%r14), %rdx
	movl $8, %r10d
	movl $SYS_rt_sigaction, %eax
	syscall
	cmpq $SIG_IGN, ACTION(%r14)
	jbe next_signal
	movl %ebx, %ecx
	andl $STUB_RESTART_KIND, %ecx
	cmpl $STUB_RESTART_UNLESS_HANDLED, %ecx
	je interrupt
	cmpl $STUB_RESTART_BY_HANDLER, %ecx
	jne restart
	testl $SA_RESTART, ACTION + 8(%r14)
	jnz restart
interrupt:
	addq $2, STUB_UC_RIP(%r14) /* behind the instruction */
	movq $-EINTR, STUB_UC_RAX(%r14)
	jmp return
restart:
	testb $STUB_RESTART_BLOCK, %bl
	jnz return_to_block
/* The kernel restores everything at once. So a handler sees the program's state, not the stub's. */
return:
	movl $SYS_rt_sigreturn, %eax
	syscall

/* rt_sigreturn() would make restart_syscall() fail with EINTR. */
return_to_block:
	movl $SYS_rt_sigprocmask, %eax
	movl $SIG_SETMASK, %edi
	leaq STUB_UC_MASK(%r14), %rsi
	xorl %edx, %edx
	movl $8, %r10d
	syscall
	movq STUB_UC_FPSTATE(%r14), %rdi
	movl STUB_FP_FEATURES(%rdi), %eax
	movl STUB_FP_FEATURES + 4(%rdi), %edx
	xrstor64 (%rdi)
	pushq STUB_UC_FLAGS(%rsp)
	popfq
	movq 40(%rsp), %r8
	movq 48(%rsp), %r9
	movq 56(%rsp), %r10
	movq 64(%rsp), %r11
	movq 72(%rsp), %r12
	movq 80(%rsp), %r13
	movq 88(%rsp), %r14
	movq 96(%rsp), %r15
	movq 104(%rsp), %rdi
	movq 112(%rsp), %rsi
	movq 120(%rsp), %rbp
	movq 128(%rsp), %rbx
	movq 136(%rsp), %rdx
	movq STUB_UC_RAX(%rsp), %rax
	movq 152(%rsp), %rcx
	/* No register is left for the address to return to. */
	movq STUB_UC_LINK(%rsp), %rsp
	ret $STUB_RED_ZONE_BYTES

/* The start routine of the worker. */
worker:
	pushq %rbx
	movq %rdi, %rbx
	movl $SYS_rt_sigprocmask, %eax
	movl $SIG_SETMASK, %edi
	leaq worker_mask(%rip), %rsi
	xorl %edx, %edx
	movl $8, %r10d
	syscall
	/* It must not run with the priority of the borrowed thread, or on its CPU only. */
	movl $SYS_sched_setscheduler, %eax
	xorl %edi, %edi
	movl STUB_POLICY(%rbx), %esi
	leaq STUB_PRIORITY(%rbx), %rdx
	syscall
	movl $SYS_setpriority, %eax
	xorl %edi, %edi /* PRIO_PROCESS */
	xorl %esi, %esi
	movl STUB_NICE(%rbx), %edx
	syscall
	movl $SYS_sched_setaffinity, %eax
	xorl %edi, %edi
	movl $STUB_CPU_BYTES, %esi
	leaq STUB_CPUS(%rbx), %rdx
	syscall
	leaq STUB_LIBRARY(%rbx), %rdi
	movl $RTLD_NOW, %esi
	call *STUB_DLOPEN(%rbx)
	testq %rax, %rax
	jz cannot_load
	movq %rax, %rdi
	leaq STUB_ENTRY(%rbx), %rsi
	call *STUB_DLSYM(%rbx)
	testq %rax, %rax
	jz cannot_load
	/* The exchange orders the two words: either xtrace attach sees the state, or this the other. */
	movl $STUB_IS_ENTERING, %edx
	xchgl %edx, STUB_STATE(%rbx)
	movl $STUB_IS_CANCELLED, %edx
	cmpl $0, STUB_CANCEL(%rbx)
	jne publish
	movq STUB_SETTINGS(%rbx), %rdi
	addq %rbx, %rdi
	call *%rax
	movl $STUB_IS_DONE, %edx
	testq %rax, %rax
	jz publish
	movl $STUB_IS_REFUSED, %edx
	jmp copy_message
cannot_load:
	call *STUB_DLERROR(%rbx)
	movl $STUB_CANNOT_LOAD, %edx
	testq %rax, %rax
	jz publish
copy_message:
	movq %rax, %rsi
	leaq STUB_MESSAGE(%rbx), %rdi
	movl $(STUB_MESSAGE_BYTES - 1), %ecx
1:	lodsb
	stosb
	testb %al, %al
	jz publish
	decl %ecx
	jnz 1b
publish:
	movl %edx, STUB_STATE(%rbx)
	xorl %eax, %eax
	popq %rbx
	ret
xt_stub_end:

	.section .note.GNU-stack, "", @progbits
