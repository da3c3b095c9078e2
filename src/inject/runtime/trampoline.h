/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry code for functions that need their caller's registers.
 */
#ifndef XT_INJECT_TRAMPOLINE_H
#define XT_INJECT_TRAMPOLINE_H

#include <stdint.h>

#if !defined(__x86_64__)
#error "ENTRY_STUB is written for x86-64"
#endif

/*
 * The callee-saved registers at the call, pushed by the entry code. The caller's stack pointer is
 * the address behind this struct.
 */
struct caller_regs {
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t return_address;
};

/*
 * Defines the function `name` in a section. It takes up to four integer arguments and returns an
 * integer or nothing.
 *
 * It pushes the callee-saved registers as struct caller_regs, then calls `body` with the same
 * arguments and a pointer to that struct as the fifth. A stack walk can thus start in the caller
 * with exact registers, and the stack cache can compare them like other stack words. `body` is a
 * function with external linkage and hidden visibility.
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
