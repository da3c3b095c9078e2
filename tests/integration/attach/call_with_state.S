/* SPDX-License-Identifier: Apache-2.0 */
#include "call_with_state.h"

	.text
	.globl call_with_state
	.type call_with_state, @function
call_with_state:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq %r12
	.cfi_adjust_cfa_offset 8
	pushq %r13
	.cfi_adjust_cfa_offset 8
	pushq %r14
	.cfi_adjust_cfa_offset 8
	pushq %r15
	.cfi_adjust_cfa_offset 8
	subq $16, %rsp
	.cfi_adjust_cfa_offset 16
	stmxcsr (%rsp)
	fnstcw 4(%rsp)
	pushq %rdi
	.cfi_adjust_cfa_offset 8

	ldmxcsr STATE_MXCSR(%rdi)
	fldcw STATE_FCW(%rdi)
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu STATE_YMM + 32 * \n(%rdi), %ymm\n
	.endr
	cmpq $0, STATE_AVX512(%rdi)
	je 1f
	vmovdqu64 STATE_ZMM31(%rdi), %zmm31
	kmovw STATE_K7(%rdi), %k7
1:
	movq STATE_RSI(%rdi), %rsi
	movq STATE_RDX(%rdi), %rdx
	movq STATE_R10(%rdi), %r10
	movq STATE_R8(%rdi), %r8
	movq STATE_R9(%rdi), %r9
	movq STATE_RBX(%rdi), %rbx
	movq STATE_RBP(%rdi), %rbp
	movq STATE_R12(%rdi), %r12
	movq STATE_R13(%rdi), %r13
	movq STATE_R14(%rdi), %r14
	movq STATE_R15(%rdi), %r15
	pushq STATE_FLAGS(%rdi)
	.cfi_adjust_cfa_offset 8
	popfq
	.cfi_adjust_cfa_offset -8
	movq STATE_RAX(%rdi), %rax
	movq STATE_RDI(%rdi), %rdi
	syscall
	/* The red zone must be intact too: the caller's pointer is taken from above it. */
	xchgq %rdi, (%rsp)
	movq %rax, STATE_RAX(%rdi)
	pushfq
	.cfi_adjust_cfa_offset 8
	popq STATE_FLAGS(%rdi)
	.cfi_adjust_cfa_offset -8
	cld
	popq STATE_RDI(%rdi)
	.cfi_adjust_cfa_offset -8
	movq %rsi, STATE_RSI(%rdi)
	movq %rdx, STATE_RDX(%rdi)
	movq %r10, STATE_R10(%rdi)
	movq %r8, STATE_R8(%rdi)
	movq %r9, STATE_R9(%rdi)
	movq %rbx, STATE_RBX(%rdi)
	movq %rbp, STATE_RBP(%rdi)
	movq %r12, STATE_R12(%rdi)
	movq %r13, STATE_R13(%rdi)
	movq %r14, STATE_R14(%rdi)
	movq %r15, STATE_R15(%rdi)
	stmxcsr STATE_MXCSR(%rdi)
	fnstcw STATE_FCW(%rdi)
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu %ymm\n, STATE_YMM + 32 * \n(%rdi)
	.endr
	cmpq $0, STATE_AVX512(%rdi)
	je 2f
	vmovdqu64 %zmm31, STATE_ZMM31(%rdi)
	kmovw %k7, STATE_K7(%rdi)
2:
	vzeroupper
	ldmxcsr (%rsp)
	fldcw 4(%rsp)
	addq $16, %rsp
	.cfi_adjust_cfa_offset -16
	popq %r15
	.cfi_adjust_cfa_offset -8
	popq %r14
	.cfi_adjust_cfa_offset -8
	popq %r13
	.cfi_adjust_cfa_offset -8
	popq %r12
	.cfi_adjust_cfa_offset -8
	popq %rbp
	.cfi_adjust_cfa_offset -8
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size call_with_state, . - call_with_state
	.section .note.GNU-stack, "", @progbits
