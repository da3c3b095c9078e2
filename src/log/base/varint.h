/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LEB128 and zigzag: single values inline, whole columns in varint.c.
 *
 * Byte-shuffle encoding: stores the lowest byte of every value, then the second byte of every
 * value, and so on. Times and durations have noisy low bytes and regular high bytes. Shuffling
 * separates the two, so zstd compresses the regular bytes well.
 *
 * Decoders accept untrusted input: they never read past `end` and reject values above 64 bits.
 */
#ifndef XT_LOG_VARINT_H
#define XT_LOG_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XT_VARINT_BYTES_MAX 10

static inline uint64_t xt_zigzag(uint64_t difference)
{
	return (difference << 1) ^ (0 - (difference >> 63));
}

static inline uint64_t xt_unzigzag(uint64_t code)
{
	return (code >> 1) ^ (0 - (code & 1));
}

/* Writes at most XT_VARINT_BYTES_MAX bytes; returns the byte after the last one written. */
static inline uint8_t *xt_uvar_put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* Returns the byte after the value, or NULL if the value is truncated or too large. */
static inline const uint8_t *xt_uvar_get(const uint8_t *p, const uint8_t *end, uint64_t *value_out)
{
	uint64_t value = 0;

	for (unsigned shift = 0; p < end && shift < 7 * XT_VARINT_BYTES_MAX; shift += 7) {
		uint64_t byte = *p++;

		if (shift == 63 && byte > 1)
			return NULL;
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value_out = value;
			return p;
		}
	}
	return NULL;
}

/*
 * Decode `count` values from [p, end). Return the byte after the last value, or NULL if a value is
 * missing or malformed; `out` is then undefined. The delta form sums zigzag differences, starting
 * from 0.
 */
const uint8_t *xt_uvar_decode(const uint8_t *p, const uint8_t *end, uint64_t *out, size_t count);
const uint8_t *xt_delta_decode(const uint8_t *p, const uint8_t *end, uint64_t *out, size_t count);

/*
 * Encode `count` values. `out` needs XT_VARINT_BYTES_MAX bytes for each. Return the byte after the
 * output.
 */
uint8_t *xt_uvar_encode(uint8_t *out, const uint64_t *values, size_t count);
uint8_t *xt_delta_encode(uint8_t *out, const uint64_t *values, size_t count);

#define XT_BYTE_SHUFFLE_MAX	   8 /* bytes of a value */
#define XT_BYTE_SHUFFLE_HEAD_BYTES 9 /* at most: the first value of differences, and the width */

/*
 * Encodes `count` values (at least one), as they are or as differences. `out` needs room for the
 * head and XT_BYTE_SHUFFLE_MAX bytes for each value. Returns the byte after the output.
 */
uint8_t *xt_byte_shuffle_encode(uint8_t *out, const uint64_t *values, size_t count, bool delta);

/*
 * Decodes `count` values from exactly [data, end). Returns false if the input is malformed; `out`
 * is then undefined. The input is untrusted.
 */
bool xt_byte_shuffle_decode(const uint8_t *data, const uint8_t *end, uint64_t *out, size_t count,
			    bool delta);

#endif
