/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that sign their return address (pointer authentication of aarch64).
 *
 * Their unwind tables have the instruction DW_CFA_AARCH64_negate_ra_state, or its form _with_pc.
 * libunwind before 1.8 rejects it, so that it cannot unwind such a function at all. The walk
 * removes signatures from all words that it reads, so for libunwind the instruction is a
 * DW_CFA_nop. Any thread; no state.
 */
#ifndef XT_INJECT_SIGNED_RETURNS_H
#define XT_INJECT_SIGNED_RETURNS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Finds these instructions among the call frame instructions of a function. Stores the address of
 * each, up to `count_max`, and returns their number. Stops at an instruction that it does not know.
 * libunwind ends the walk at one that is not found, if it is before the frame's address.
 */
size_t signed_returns_find(const uint8_t *instructions, size_t byte_count, uintptr_t *addresses_out,
			   size_t count_max);

/* Replaces those of the instructions that are in the word read at an address by DW_CFA_nop. */
void signed_returns_hide(const uintptr_t *addresses, size_t count, uintptr_t address,
			 uint64_t *word);

#endif
