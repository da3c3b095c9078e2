/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns as planes of bytes: the lowest byte of every value, then the next one of every value, up
 * to the highest that any of them has. Times and durations go this way: their low bytes are noise
 * and their high ones are not, which a compressor can only tell apart when they are apart. Pure
 * functions, for any thread.
 */
#ifndef XT_LOG_BYTE_SHUFFLE_H
#define XT_LOG_BYTE_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XT_BYTE_SHUFFLE_MAX	   8 /* of 64 bits */
#define XT_BYTE_SHUFFLE_HEAD_BYTES 9 /* at most: the start of differences, the width */

/* Encodes count values (at least one), as they are or as differences; out has room for the head and
 * XT_BYTE_SHUFFLE_MAX bytes each. Returns the byte after. */
uint8_t *xt_byte_shuffle_encode(uint8_t *out, const uint64_t *values, size_t count, bool delta);

/* Decodes count values from exactly [data, end). False if that is not what is there; out is then
 * undefined. For hostile input. */
bool xt_byte_shuffle_decode(const uint8_t *data, const uint8_t *end, uint64_t *out, size_t count,
			    bool delta);

#endif
