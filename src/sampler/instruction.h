/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the length and the parts of x86-64 instructions in 64-bit mode (Intel SDM volume 2,
 * chapter 2 and appendix A). Any thread; no state.
 */
#ifndef XT_SAMPLER_INSTRUCTION_H
#define XT_SAMPLER_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opcode_map { OPCODE_MAP_1 = 0, OPCODE_MAP_0F, OPCODE_MAP_0F38, OPCODE_MAP_0F3A };

struct instruction {
	uint8_t length;
	uint8_t map; /* enum opcode_map */
	uint8_t opcode;
	uint8_t rex;   /* 0: none */
	uint8_t modrm; /* 0 if there is none */
	bool has_modrm;
	bool is_vector; /* VEX or EVEX: cannot change RSP */
	bool has_sib;
	int32_t displacement; /* 0 if there is none */
	int32_t immediate;    /* sign-extended; 0 if there is none or it has more than 4 bytes */
};

/* False if the code ends within the instruction, or if the instruction is not known. */
bool instruction_decode(struct instruction *instruction, const uint8_t *code, size_t code_bytes);

#endif
