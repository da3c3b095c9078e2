/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of a frame with a frame pointer, from the function's code. Any thread; no state.
 *
 * Unwind tables describe such a frame relative to RBP. If only RSP is known, the distance between
 * both has to come from the instructions. It is accepted only if it is the same in the whole body:
 * - The prologue is `push %rbp; mov %rsp,%rbp`, pushes of saved registers and one subtraction.
 * - After it, only epilogues change RSP, and arguments pushed for one call and removed after it.
 * alloca() and realigned stacks are refused.
 */
#ifndef XT_SAMPLER_FRAME_SIZE_H
#define XT_SAMPLER_FRAME_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The parts of an x86-64 instruction in 64-bit mode (Intel SDM volume 2, chapter 2 and appendix A).
 */
struct instruction {
	uint8_t length;
	uint8_t map; /* 0: one-byte opcodes; 1: behind 0f; 2: behind 0f 38; 3: behind 0f 3a */
	uint8_t opcode;
	uint8_t rex;   /* 0: none */
	uint8_t modrm; /* 0 if there is none */
	bool has_modrm;
	bool is_vector;	   /* VEX or EVEX: cannot change RSP */
	int32_t immediate; /* sign-extended; 0 if there is none or it has more than 4 bytes */
};

/* False if the code ends within the instruction, or if the instruction is not known. */
bool instruction_decode(struct instruction *instruction, const uint8_t *code, size_t code_bytes);

#define FRAME_SIZE_UNKNOWN 0

/*
 * Returns RBP + 16 - RSP (that is CFA - RSP) in bytes, or FRAME_SIZE_UNKNOWN. `code` is the whole
 * function. `at` is the offset of the instruction pointer in it: of a return address, or, if
 * is_exact, of the next instruction.
 */
uint32_t frame_size_find(const uint8_t *code, size_t code_bytes, size_t at, bool is_exact);

/* Whether a call instruction may end at the end of these bytes. Give 8 bytes before the address. */
bool frame_size_ends_with_call(const uint8_t *bytes, size_t byte_count);

#endif
