/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/byte_shuffle.h"

#include <string.h>

#include "log/base/varint.h"

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
