/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine code of x86-64; see machine.h.
 */
#ifndef XT_INJECT_MACHINE_X86_64_H
#define XT_INJECT_MACHINE_X86_64_H

#include <stdint.h>

/* Pushed by the entry code. The caller's stack pointer is the address behind this struct. */
struct caller_regs {
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t return_address;
};

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
		"	.cfi_restore %rbp\n"                                                             \
		"	ret\n"                                                                           \
		"	.cfi_endproc\n"                                                                  \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection\n")

/* Keeps the caller's stack pointer in rbp, so that unwinders find the caller. */
#define SWITCH_STACK(name)                                                                         \
	__asm__(".pushsection .text, \"ax\", @progbits\n"                                          \
		".globl " #name "\n"                                                               \
		".hidden " #name "\n"                                                              \
		".type " #name ", @function\n" #name ":\n"                                         \
		"	.cfi_startproc\n"                                                                \
		"	endbr64\n"                                                                       \
		"	push %rbp\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	.cfi_rel_offset %rbp, 0\n"                                                       \
		"	mov %rsp, %rbp\n"                                                                \
		"	.cfi_def_cfa_register %rbp\n"                                                    \
		"	mov %rdi, %rsp\n"                                                                \
		"	mov %rdx, %rdi\n"                                                                \
		"	call *%rsi\n"                                                                    \
		"	mov %rbp, %rsp\n"                                                                \
		"	pop %rbp\n"                                                                      \
		"	.cfi_def_cfa %rsp, 8\n"                                                          \
		"	ret\n"                                                                           \
		"	.cfi_endproc\n"                                                                  \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection\n")

#define MACHINE_PAGE_BYTES_MAX 4096
#define MACHINE_CUDA_TARGET    "x86_64-linux" /* folder of a toolkit */
#define MACHINE_CURSOR_WORDS   160	      /* of libunwind */

/* Relocations of a word that holds the address of a function. */
#define MACHINE_RELOCATION_CALL	   R_X86_64_JUMP_SLOT
#define MACHINE_RELOCATION_GOT	   R_X86_64_GLOB_DAT
#define MACHINE_RELOCATION_ADDRESS R_X86_64_64

/* glibc's and musl's thread pointer is the address of the thread's descriptor. */
static inline uintptr_t machine_pthread_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* Return addresses have no signature. */
static inline uint64_t machine_strip_signature(uint64_t address)
{
	return address;
}

#endif
