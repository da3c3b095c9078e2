/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/base/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CHECKSUM_BYTES 8 /* at the end */
#define ERRNO_MAX      4095

/* FNV-1a over words, then over the rest: fast enough for megabytes. */
static uint64_t checksum(const uint8_t *data, size_t bytes)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325), word;

	for (; bytes >= sizeof(word); data += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x100000001b3);
		hash ^= hash >> 32;
	}
	for (; bytes; data++, bytes--)
		hash = (hash ^ *data) * UINT64_C(0x100000001b3);
	return hash;
}

void pack_begin(struct pack *pack)
{
	*pack = (struct pack){0};
}

void pack_open(struct pack *pack, uint8_t *data, size_t bytes)
{
	uint64_t stored;

	*pack = (struct pack){.data = data, .is_reading = true};
	if (bytes < CHECKSUM_BYTES) {
		pack->error = -EBADMSG;
		return;
	}
	pack->bytes = bytes - CHECKSUM_BYTES;
	memcpy(&stored, data + pack->bytes, CHECKSUM_BYTES);
	pack_check(pack, stored == checksum(data, pack->bytes));
}

uint8_t *pack_end(struct pack *pack, size_t *bytes_out)
{
	uint64_t sum = pack->error ? 0 : checksum(pack->data, pack->bytes);

	pack_bytes(pack, &sum, sizeof(sum));
	if (pack->error) {
		free(pack->data);
		pack->data = NULL;
	}
	*bytes_out = pack->error ? 0 : pack->bytes;
	return pack->data;
}

void pack_check(struct pack *pack, bool is_valid)
{
	if (pack->is_reading && !is_valid && !pack->error)
		pack->error = -EBADMSG;
}

void pack_bytes(struct pack *pack, void *value, size_t bytes)
{
	if (pack->is_reading)
		pack_check(pack, bytes <= pack->bytes - pack->at);
	else if (!pack->error)
		xt_grow(pack->data, pack->capacity, pack->bytes + bytes);
	if (pack->error || !bytes)
		return;
	if (pack->is_reading) {
		memcpy(value, pack->data + pack->at, bytes);
		pack->at += bytes;
	} else {
		memcpy(pack->data + pack->bytes, value, bytes);
		pack->bytes += bytes;
	}
}

void pack_array(struct pack *pack, void *array, size_t *count, size_t *capacity,
		size_t element_bytes, size_t count_max)
{
	void **place = array;
	uint64_t number = *count;

	PACK(pack, number);
	if (pack->is_reading) {
		pack_check(pack, number <= count_max &&
					 number <= (pack->bytes - pack->at) / element_bytes);
		if (pack->error)
			return;
		*place = xt_calloc(number + 1, element_bytes);
		*count = number;
		if (capacity)
			*capacity = number + 1;
	}
	pack_bytes(pack, *place, *count * element_bytes);
}

void pack_bool(struct pack *pack, bool *value)
{
	uint8_t byte = pack->is_reading ? 0 : *value;

	PACK(pack, byte);
	pack_check(pack, byte <= 1);
	if (pack->is_reading)
		*value = byte == 1;
}

void pack_error_number(struct pack *pack, int *error)
{
	PACK(pack, *error);
	pack_check(pack, *error <= 0 && *error >= -ERRNO_MAX);
	if (pack->error && pack->is_reading)
		*error = 0;
}

void pack_check_bool(struct pack *pack, const bool *flag)
{
	uint8_t byte;

	memcpy(&byte, flag, sizeof(byte));
	pack_check(pack, byte <= 1);
}

void pack_text(struct pack *pack, char **text)
{
	size_t length = pack->is_reading ? 0 : strlen(*text);

	/* calloc() leaves a zero byte at the end. */
	pack_array(pack, text, &length, NULL, 1, SIZE_MAX);
}
