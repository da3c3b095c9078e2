/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/unwind/signed_returns.h"

#include <stdbool.h>
#include <string.h>

#define NEGATE_RA_STATE_WITH_PC 0x2c /* the signature also depends on the code's address */
#define NEGATE_RA_STATE		0x2d
#define OFFSET			0x80 /* in the upper two bits; the others of these have no operand */
#define UPPER_BITS		0xc0
#define UPPER_BITS_BYTE		0x3f

/* The operands of an instruction, in this order (DWARF 5, 6.4.2). */
struct operands {
	bool is_known;
	uint8_t bytes;	 /* of fixed size */
	uint8_t numbers; /* LEB128 */
	bool has_block;	 /* a LEB128 length, then so many bytes */
};

#define NUMBERS(count)                                                                             \
	{                                                                                          \
		.is_known = true, .numbers = count                                                 \
	}
#define BYTES(count)                                                                               \
	{                                                                                          \
		.is_known = true, .bytes = count                                                   \
	}
#define BLOCK(numbers_before)                                                                      \
	{                                                                                          \
		.is_known = true, .numbers = numbers_before, .has_block = true                     \
	}

/* DW_CFA_set_loc (0x01) is missing: the size of its operand depends on the table. */
static const struct operands operands_of[UPPER_BITS_BYTE + 1] = {
	[0x00] = NUMBERS(0), /* nop */
	[0x02] = BYTES(1),   /* advance_loc1 */
	[0x03] = BYTES(2),   /* advance_loc2 */
	[0x04] = BYTES(4),   /* advance_loc4 */
	[0x05] = NUMBERS(2), /* offset_extended */
	[0x06] = NUMBERS(1), /* restore_extended */
	[0x07] = NUMBERS(1), /* undefined */
	[0x08] = NUMBERS(1), /* same_value */
	[0x09] = NUMBERS(2), /* register */
	[0x0a] = NUMBERS(0), /* remember_state */
	[0x0b] = NUMBERS(0), /* restore_state */
	[0x0c] = NUMBERS(2), /* def_cfa */
	[0x0d] = NUMBERS(1), /* def_cfa_register */
	[0x0e] = NUMBERS(1), /* def_cfa_offset */
	[0x0f] = BLOCK(0),   /* def_cfa_expression */
	[0x10] = BLOCK(1),   /* expression */
	[0x11] = NUMBERS(2), /* offset_extended_sf */
	[0x12] = NUMBERS(2), /* def_cfa_sf */
	[0x13] = NUMBERS(1), /* def_cfa_offset_sf */
	[0x14] = NUMBERS(2), /* val_offset */
	[0x15] = NUMBERS(2), /* val_offset_sf */
	[0x16] = BLOCK(1),   /* val_expression */
	[NEGATE_RA_STATE_WITH_PC] = NUMBERS(0),
	[NEGATE_RA_STATE] = NUMBERS(0),
	[0x2e] = NUMBERS(1), /* GNU_args_size */
	[0x2f] = NUMBERS(2), /* GNU_negative_offset_extended */
};

/* Advances *at past a LEB128 number. Returns its lower 63 bits. */
static uint64_t read_number(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		if (shift < 63)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

/* Advances *at past the operands. False if they do not end before `end`. */
static bool skip_operands(const struct operands *operands, const uint8_t **at, const uint8_t *end)
{
	uint64_t bytes = operands->bytes;

	for (unsigned i = 0; i < operands->numbers; i++)
		read_number(at, end);
	if (operands->has_block)
		bytes += read_number(at, end);
	if (bytes > (uint64_t)(end - *at))
		return false;
	*at += bytes;
	return true;
}

size_t signed_returns_find(const uint8_t *instructions, size_t byte_count, uintptr_t *addresses_out,
			   size_t count_max)
{
	static const struct operands one_number = NUMBERS(1), none = NUMBERS(0);
	const uint8_t *at = instructions, *end = instructions + byte_count;
	size_t count = 0;

	while (at < end && count < count_max) {
		uint8_t code = *at++, upper = code & UPPER_BITS;
		const struct operands *operands = &operands_of[code & UPPER_BITS_BYTE];

		if (upper)
			operands = upper == OFFSET ? &one_number : &none;
		if (code == NEGATE_RA_STATE || code == NEGATE_RA_STATE_WITH_PC)
			addresses_out[count++] = (uintptr_t)(at - 1);
		if (!operands->is_known || !skip_operands(operands, &at, end))
			break;
	}
	return count;
}

void signed_returns_hide(const uintptr_t *addresses, size_t count, uintptr_t address,
			 uint64_t *word)
{
	for (size_t i = 0; i < count; i++)
		if (addresses[i] - address < sizeof(*word))
			memset((uint8_t *)word + (addresses[i] - address), 0, 1);
}
