/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the code in the traced program's threads that depend on the processor. Each
 * part defines the same names.
 *
 * struct caller_regs: the callee-saved registers at a call, then return_address.
 *
 * TRAMPOLINE(section, name, body) defines the function `name` in a section. It takes up to four
 * integer arguments and returns an integer or nothing. It stores the callee-saved registers as
 * struct caller_regs, then calls `body` with the same arguments and a pointer to that struct as the
 * fifth. A stack walk can thus start in the caller with exact registers, and the stack cache can
 * compare them like other stack words. `body` is a function with external linkage and hidden
 * visibility.
 *
 * SWITCH_STACK(name) defines void name(void *top, void (*work)(void *), void *argument), which
 * calls work(argument) on the stack that ends at `top`.
 *
 * machine_pthread_self() is pthread_self(), on the hot path.
 */
#ifndef XT_INJECT_MACHINE_H
#define XT_INJECT_MACHINE_H

#include <stdint.h>

/* Defines a function with hidden visibility, which returns after these instructions. */
#define ASM_FUNCTION(section, name, instructions)                                                  \
	__asm__(".pushsection " section ", \"ax\", @progbits\n"                                    \
		".globl " #name "\n"                                                               \
		".hidden " #name "\n"                                                              \
		".type " #name ", @function\n" #name ":\n"                                         \
		"	.cfi_startproc\n" instructions "	ret\n"                                    \
		"	.cfi_endproc\n"                                                                  \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection\n")

#if defined(__x86_64__)

/* Pushed by the entry code. The caller's stack pointer is the address behind this struct. */
struct caller_regs {
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t return_address;
};

#define TRAMPOLINE(section, name, body)                                                            \
	ASM_FUNCTION(section, name,                                                                \
		     "	endbr64\n"                                                                  \
		     "	push %rbp\n"                                                                \
		     "	.cfi_adjust_cfa_offset 8\n"                                                 \
		     "	.cfi_rel_offset %rbp, 0\n"                                                  \
		     "	.irp reg, rbx, r12, r13, r14, r15\n"                                        \
		     "	push %\\reg\n"                                                              \
		     "	.cfi_adjust_cfa_offset 8\n"                                                 \
		     "	.endr\n"                                                                    \
		     "	mov %rsp, %r8\n"                                                            \
		     "	sub $8, %rsp\n" /* aligns the stack for the call */                        \
		     "	.cfi_adjust_cfa_offset 8\n"                                                 \
		     "	call " #body "\n"                                                          \
		     "	add $56, %rsp\n"                                                            \
		     "	.cfi_adjust_cfa_offset -56\n"                                               \
		     "	.cfi_restore %rbp\n")

/* Keeps the caller's stack pointer in rbp, so that unwinders find the caller. */
#define SWITCH_STACK(name)                                                                         \
	ASM_FUNCTION(".text", name,                                                                \
		     "	endbr64\n"                                                                  \
		     "	push %rbp\n"                                                                \
		     "	.cfi_adjust_cfa_offset 8\n"                                                 \
		     "	.cfi_rel_offset %rbp, 0\n"                                                  \
		     "	mov %rsp, %rbp\n"                                                           \
		     "	.cfi_def_cfa_register %rbp\n"                                               \
		     "	mov %rdi, %rsp\n"                                                           \
		     "	mov %rdx, %rdi\n"                                                           \
		     "	call *%rsi\n"                                                               \
		     "	mov %rbp, %rsp\n"                                                           \
		     "	pop %rbp\n"                                                                 \
		     "	.cfi_def_cfa %rsp, 8\n")

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

#elif defined(__aarch64__)

/*
 * Functions start with `hint #34` (bti c), so that they may be called through pointers where branch
 * targets are enforced. Older assemblers lack its name, and older processors ignore it. Return
 * addresses are stored unsigned, so that the walk can use them as they are.
 */
#include <pthread.h>

/*
 * Stored by the entry code. The last two words are a frame record. The caller's stack pointer is
 * the address behind this struct.
 */
struct caller_regs {
	uint64_t x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29;
	uint64_t return_address;
};

#define TRAMPOLINE(section, name, body)                                                            \
	ASM_FUNCTION(section, name,                                                                \
		     "	hint #34\n"                                                                 \
		     "	stp x19, x20, [sp, #-96]!\n"                                                \
		     "	.cfi_adjust_cfa_offset 96\n"                                                \
		     "	.cfi_rel_offset x19, 0\n"                                                   \
		     "	.cfi_rel_offset x20, 8\n"                                                   \
		     "	stp x21, x22, [sp, #16]\n"                                                  \
		     "	.cfi_rel_offset x21, 16\n"                                                  \
		     "	.cfi_rel_offset x22, 24\n"                                                  \
		     "	stp x23, x24, [sp, #32]\n"                                                  \
		     "	.cfi_rel_offset x23, 32\n"                                                  \
		     "	.cfi_rel_offset x24, 40\n"                                                  \
		     "	stp x25, x26, [sp, #48]\n"                                                  \
		     "	.cfi_rel_offset x25, 48\n"                                                  \
		     "	.cfi_rel_offset x26, 56\n"                                                  \
		     "	stp x27, x28, [sp, #64]\n"                                                  \
		     "	.cfi_rel_offset x27, 64\n"                                                  \
		     "	.cfi_rel_offset x28, 72\n"                                                  \
		     "	stp x29, x30, [sp, #80]\n"                                                  \
		     "	.cfi_rel_offset x29, 80\n"                                                  \
		     "	.cfi_rel_offset x30, 88\n"                                                  \
		     "	add x29, sp, #80\n"                                                         \
		     "	mov x4, sp\n"                                                               \
		     "	bl " #body "\n"                                                            \
		     "	ldp x29, x30, [sp, #80]\n"                                                  \
		     "	.irp reg, x29, x30, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28\n"     \
		     "	.cfi_restore \\reg\n"                                                       \
		     "	.endr\n"                                                                    \
		     "	add sp, sp, #96\n"                                                          \
		     "	.cfi_adjust_cfa_offset -96\n")

/* Keeps the caller's stack pointer in x29, so that unwinders find the caller. */
#define SWITCH_STACK(name)                                                                         \
	ASM_FUNCTION(".text", name,                                                                \
		     "	hint #34\n"                                                                 \
		     "	stp x29, x30, [sp, #-16]!\n"                                                \
		     "	.cfi_adjust_cfa_offset 16\n"                                                \
		     "	.cfi_rel_offset x29, 0\n"                                                   \
		     "	.cfi_rel_offset x30, 8\n"                                                   \
		     "	mov x29, sp\n"                                                              \
		     "	.cfi_def_cfa_register x29\n"                                                \
		     "	mov sp, x0\n"                                                               \
		     "	mov x0, x2\n"                                                               \
		     "	blr x1\n"                                                                   \
		     "	mov sp, x29\n"                                                              \
		     "	.cfi_def_cfa_register sp\n"                                                 \
		     "	ldp x29, x30, [sp], #16\n"                                                  \
		     "	.cfi_adjust_cfa_offset -16\n"                                               \
		     "	.cfi_restore x29\n"                                                         \
		     "	.cfi_restore x30\n")

#define MACHINE_PAGE_BYTES_MAX	   65536
#define MACHINE_CUDA_TARGET	   "sbsa-linux" /* folder of a toolkit */
#define MACHINE_CURSOR_WORDS	   256		/* of libunwind */

/* Relocations of a word that holds the address of a function. */
#define MACHINE_RELOCATION_CALL	   R_AARCH64_JUMP_SLOT
#define MACHINE_RELOCATION_GOT	   R_AARCH64_GLOB_DAT
#define MACHINE_RELOCATION_ADDRESS R_AARCH64_ABS64

/*
 * The thread pointer is the end of the thread's descriptor, whose size depends on the C library.
 * The call computes one difference: no lock, no system call.
 */
static inline uintptr_t machine_pthread_self(void)
{
	return (uintptr_t)pthread_self();
}

/*
 * Removes the signature of a return address (pointer authentication). `hint #7` is xpaclri, which
 * works on x30 and does nothing on processors without signatures. Other addresses stay as they are,
 * also with a tag: Linux lets the processor ignore bits 56 to 63, so they have no signature.
 */
static inline uint64_t machine_strip_signature(uint64_t address)
{
	register uint64_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

#else
#error "xtrace runs on x86-64 and aarch64"
#endif

#endif
