/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that others call and that want to know their caller's registers.
 */
#ifndef XT_INJECT_TRAMPOLINE_H
#define XT_INJECT_TRAMPOLINE_H

#include <stdint.h>

#if !defined(__x86_64__)
#error "ENTRY_STUB is written for x86-64"
#endif

/* The registers a function must preserve, as they were when the callback was called; saved on the
 * stack by its entry code. The caller's stack pointer is the address behind this struct. */
struct caller_regs {
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t return_address;
};

/*
 * Makes the function `name` in that section, of up to four integer arguments and with an integer result or none.
 * It puts the registers that a function must preserve on the stack as struct caller_regs, so that
 * a walk can begin in the caller with its exact state, and so that they can be compared like any
 * other stack word; then it calls `body` with the same arguments and, as the fifth, that struct.
 * The body is an ordinary function with external linkage and hidden visibility.
 */
#define TRAMPOLINE(section, name, body)                                                            \
	__asm__(".pushsection " section ", \"ax\", @progbits\n"                                    \
		".globl " #name "\n"                                                               \
		".hidden " #name "\n"                                                              \
		".type " #name ", @function\n" #name ":\n"                                         \
		"	.cfi_startproc\n"                                                                \
		"	endbr64\n"                                                                       \
		"	push %rbp\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	.cfi_rel_offset %rbp, 0\n"                                                       \
		"	push %rbx\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %r12\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %r13\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %r14\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %r15\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	mov %rsp, %r8\n"                                                                 \
		"	sub $8, %rsp\n" /* aligns the stack for the call */                        \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	call " #body "\n"                                                          \
		"	add $56, %rsp\n"                                                                 \
		"	.cfi_adjust_cfa_offset -56\n"                                                    \
		"	ret\n"                                                                           \
		"	.cfi_endproc\n"                                                                  \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection\n")

#endif
