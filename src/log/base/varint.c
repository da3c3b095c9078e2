/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodings of whole columns.
 *
 * LEB128: decoding is the innermost loop of every reader, so it takes eight bytes at a
 * time. These are eight one-byte values, four two-byte values, or two values of up to four bytes.
 * Where a value ends is computed without a branch. Pure functions, any thread.
 */
#include "log/base/varint.h"

#include <string.h>

/* The continuation bit of each byte. It is clear in the last byte of a value. */
#define TOP_BITS	  UINT64_C(0x8080808080808080)
#define TOP_BITS_OF_PAIRS UINT64_C(0x8000800080008000)
#define HALF_TOP_BITS	  UINT64_C(0x80808080)

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* Joins the two 7-bit groups of each pair of bytes. */
static inline uint64_t squeeze_pairs(uint64_t word)
{
	return (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
}

/* Joins the four 7-bit groups in each half of a word. */
static inline uint64_t squeeze_halves(uint64_t word)
{
	word = squeeze_pairs(word);
	return (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
}

/* All bits up to and including the lowest set bit of stop. */
static inline uint64_t mask_to(uint64_t stop)
{
	return stop ^ (stop - 1);
}

struct output {
	uint64_t *next;
	uint64_t sum; /* of the differences so far */
	bool delta;
};

static inline void put(struct output *out, uint64_t value)
{
	*out->next++ = out->delta ? (out->sum += xt_unzigzag(value)) : value;
}

/*
 * Decodes the 1 to 8 values that end within the eight bytes at p, or one longer value that starts
 * there. Returns the byte after them, or NULL if a value is malformed.
 */
static inline __attribute__((always_inline)) const uint8_t *
take_word(const uint8_t *p, const uint8_t *end, struct output *out)
{
	uint64_t word = load64(p);
	uint64_t stop = ~word & TOP_BITS;
	uint64_t first = mask_to(stop), second;
	unsigned first_bits;
	uint64_t value = 0;

	if (stop == TOP_BITS) {
#pragma GCC unroll 8
		for (unsigned k = 0; k < 8; k++)
			put(out, p[k]);
		return p + 8;
	}
	if (stop == TOP_BITS_OF_PAIRS) {
		word = squeeze_pairs(word);
		for (unsigned k = 0; k < 64; k += 16)
			put(out, (word >> k) & 0xffff);
		return p + 8;
	}
	if (stop & HALF_TOP_BITS) { /* the first value has at most four bytes */
		first_bits = (unsigned)__builtin_ctzll(stop) + 1;
		second = mask_to(stop >> first_bits);
		if (second <= UINT32_MAX) {
			word = squeeze_halves((word & first) | (word >> first_bits & second) << 32);
			put(out, (uint32_t)word);
			put(out, word >> 32);
			return p + (first_bits + 64 - (unsigned)__builtin_clzll(second)) / 8;
		}
	}
	p = xt_uvar_get(p, end, &value);
	put(out, value);
	return p;
}

static inline __attribute__((always_inline)) const uint8_t *
decode(const uint8_t *p, const uint8_t *end, uint64_t *values, size_t count, bool delta)
{
	struct output out = {.next = values, .delta = delta};
	uint64_t *values_end = values + count;

	while (values_end - out.next >= 8 && end - p >= 8) {
		p = take_word(p, end, &out);
		if (!p)
			return NULL;
	}
	while (out.next < values_end) {
		uint64_t value;

		p = xt_uvar_get(p, end, &value);
		if (!p)
			return NULL;
		put(&out, value);
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

#define BLOCK_VALUES 512 /* one block stays in the L1 cache */

static inline uint64_t difference(const uint64_t *values, size_t i, bool delta)
{
	if (!delta)
		return values[i];
	return i ? xt_zigzag(values[i] - values[i - 1]) : 0;
}

uint8_t *xt_byte_shuffle_encode(uint8_t *out, const uint64_t *values, size_t count, bool delta)
{
	uint64_t block[BLOCK_VALUES], all = 0;
	unsigned width = 1;

	for (size_t i = 0; i < count; i++)
		all |= difference(values, i, delta);
	while (width < XT_BYTE_SHUFFLE_MAX && all >> (8 * width))
		width++;
	if (delta) {
		memcpy(out, values, sizeof(*values));
		out += sizeof(*values);
	}
	*out++ = (uint8_t)width;
	for (size_t from = 0; from < count; from += BLOCK_VALUES) {
		size_t length = count - from < BLOCK_VALUES ? count - from : BLOCK_VALUES;

		for (size_t i = 0; i < length; i++)
			block[i] = difference(values, from + i, delta);
		for (unsigned plane = 0; plane < width; plane++) {
			uint8_t *to = out + plane * count + from;

			for (size_t i = 0; i < length; i++)
				to[i] = (uint8_t)(block[i] >> (8 * plane));
		}
	}
	return out + width * count;
}

/*
 * Rebuilds `count` values from `width` planes. Plain loops, so that the compiler vectorises them.
 */
static void join(const uint8_t *planes, size_t count, unsigned width, uint64_t *restrict out,
		 size_t length)
{
	const uint8_t *low = planes, *second = planes + count;

	if (width == 1) {
		for (size_t i = 0; i < length; i++)
			out[i] = low[i];
		return;
	}
	for (size_t i = 0; i < length; i++)
		out[i] = low[i] | (uint32_t)second[i] << 8;
	for (unsigned plane = 2; plane < width; plane++) {
		const uint8_t *next = planes + plane * count;

		for (size_t i = 0; i < length; i++)
			out[i] |= (uint64_t)next[i] << (8 * plane);
	}
}

bool xt_byte_shuffle_decode(const uint8_t *data, const uint8_t *end, uint64_t *out, size_t count,
			    bool delta)
{
	uint64_t sum = 0;
	unsigned width;

	if (delta) {
		if ((size_t)(end - data) < sizeof(sum))
			return false;
		memcpy(&sum, data, sizeof(sum));
		data += sizeof(sum);
	}
	if (data == end)
		return false;
	width = *data++;
	if (width < 1 || width > XT_BYTE_SHUFFLE_MAX || (size_t)(end - data) != width * count)
		return false;
	for (size_t from = 0; from < count; from += BLOCK_VALUES) {
		size_t length = count - from < BLOCK_VALUES ? count - from : BLOCK_VALUES;

		join(data + from, count, width, out + from, length);
		for (size_t i = from; delta && i < from + length; i++)
			out[i] = sum += xt_unzigzag(out[i]);
	}
	return true;
}
