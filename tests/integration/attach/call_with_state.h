/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a system call with known values in all registers, and returns what they hold afterwards.
 * Included by assembly too.
 */
#ifndef CALL_WITH_STATE_H
#define CALL_WITH_STATE_H

#define STATE_RAX    0 /* number, then result */
#define STATE_RDI    8 /* the arguments, in the order of the call */
#define STATE_RSI    16
#define STATE_RDX    24
#define STATE_R10    32
#define STATE_R8     40
#define STATE_R9     48
#define STATE_RBX    56
#define STATE_RBP    64
#define STATE_R12    72
#define STATE_R13    80
#define STATE_R14    88
#define STATE_R15    96
#define STATE_FLAGS  104
#define STATE_MXCSR  112 /* u32 */
#define STATE_FCW    116 /* u16 */
#define STATE_AVX512 120 /* u64: not 0 if the processor has it */
#define STATE_YMM    128 /* 16 registers of 32 bytes */
#define STATE_ZMM31  640 /* 64 bytes */
#define STATE_K7     704
#define STATE_BYTES  768

#ifndef __ASSEMBLER__
#include <stdint.h>

struct call_state {
	uint64_t rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, flags;
	uint32_t mxcsr;
	uint16_t fcw, unused;
	uint64_t has_avx512;
	uint8_t ymm[16][32];
	uint8_t zmm31[64];
	uint64_t k7;
	uint8_t end[56];
};

void call_with_state(struct call_state *state);
#endif

#endif
