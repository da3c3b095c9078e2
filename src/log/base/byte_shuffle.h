/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-shuffle encoding: stores the lowest byte of every value, then the second byte of every
 * value, and so on.
 *
 * Times and durations have noisy low bytes and regular high bytes. Shuffling separates the two, so
 * zstd compresses the regular bytes well. Pure functions, any thread.
 */
#ifndef XT_LOG_BYTE_SHUFFLE_H
#define XT_LOG_BYTE_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
