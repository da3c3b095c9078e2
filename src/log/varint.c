/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of LEB128 values. Decoding is the innermost loop of every reader: it takes eight
 * values at a time while they are one byte each, and single values by one unaligned load and no
 * branch on their length else. Pure functions, for any thread.
 */
#include "log/varint.h"

#include <stdbool.h>
#include <string.h>

#define STOP_BITS UINT64_C(0x8080808080808080)

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* Squeezes eight 7-bit groups, one a byte, into 56 bits. */
static inline uint64_t squeeze(uint64_t word)
{
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* One value; 8 bytes from p must be readable. */
static inline const uint8_t *get_one(const uint8_t *p, const uint8_t *end, uint64_t *value_out)
{
	uint64_t word = load64(p);
	uint64_t stop = ~word & STOP_BITS;

	if (!stop)
		return xt_uvar_get(p, end, value_out);
	*value_out = squeeze(word & (stop ^ (stop - 1)));
	return p + (__builtin_ctzll(stop) >> 3) + 1;
}

static inline const uint8_t *decode(const uint8_t *p, const uint8_t *end, uint64_t *out,
				    size_t count, bool delta)
{
	uint64_t sum = 0;
	size_t i = 0;

	while (i < count) {
		uint64_t value;

		while (i + 8 <= count && end - p >= 8) {
			uint64_t word = load64(p);

			if (word & STOP_BITS)
				break;
			for (unsigned k = 0; k < 8; k++) {
				value = (word >> (8 * k)) & 0xff;
				out[i + k] = delta ? (sum += xt_unzigzag(value)) : value;
			}
			p += 8;
			i += 8;
		}
		if (i == count)
			break;
		p = get_one(p, end, &value);
		if (!p || p > end)
			return NULL;
		out[i++] = delta ? (sum += xt_unzigzag(value)) : value;
	}
	return p;
}

const uint8_t *xt_uvar_decode(const uint8_t *p, const uint8_t *end, uint64_t *out, size_t count)
{
	return decode(p, end, out, count, false);
}

const uint8_t *xt_delta_decode(const uint8_t *p, const uint8_t *end, uint64_t *out, size_t count)
{
	return decode(p, end, out, count, true);
}

uint8_t *xt_uvar_encode(uint8_t *out, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out = xt_uvar_put(out, values[i]);
	return out;
}

uint8_t *xt_delta_encode(uint8_t *out, const uint64_t *values, size_t count)
{
	uint64_t before = 0;

	for (size_t i = 0; i < count; i++) {
		out = xt_uvar_put(out, xt_zigzag(values[i] - before));
		before = values[i];
	}
	return out;
}
