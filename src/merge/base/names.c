/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts: one block of bytes, the offsets of the texts, and an open hash table, which
 * compares texts directly.
 */
#include "merge/base/names.h"

#include <string.h>

#include "log/base/grow.h"

#define NAMES_FIRST_SLOTS 256

struct name_place {
	size_t offset;
	uint32_t length;
	uint32_t hash;
};

static uint32_t hash_text(const void *text, size_t length)
{
	const uint8_t *p = text;
	uint64_t h = 0xcbf29ce484222325u ^ length;

	for (size_t i = 0; i < length; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return (uint32_t)(h ^ (h >> 32));
}

static int rehash(struct names *names, uint32_t slot_count)
{
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t n = 0; n < names->count; n++) {
		uint32_t s = names->places[n].hash & (slot_count - 1);

		while (slots[s])
			s = (s + 1) & (slot_count - 1);
		slots[s] = n + 1;
	}
	free(names->slots);
	names->slots = slots;
	names->slot_count = slot_count;
	return 0;
}

int names_init(struct names *names)
{
	*names = (struct names){0};
	if (rehash(names, NAMES_FIRST_SLOTS) < 0)
		return -ENOMEM;
	if (names_intern(names, "", 0) == NAME_FAILED) {
		names_free(names);
		return -ENOMEM;
	}
	return 0;
}

void names_free(struct names *names)
{
	free(names->text);
	free(names->places);
	free(names->slots);
	*names = (struct names){0};
}

uint32_t names_intern(struct names *names, const void *text, size_t length)
{
	uint32_t hash = hash_text(text, length);
	uint32_t mask = names->slot_count - 1;
	uint32_t s = hash & mask;
	struct name_place *place;

	for (; names->slots[s]; s = (s + 1) & mask) {
		place = &names->places[names->slots[s] - 1];
		if (place->hash == hash && place->length == length &&
		    (!length || !memcmp(names->text + place->offset, text, length)))
			return names->slots[s] - 1;
	}
	if (length >= UINT32_MAX || names->count >= UINT32_MAX / 4 ||
	    grow(&names->text, &names->text_capacity, names->text_used + length + 1, 1) < 0 ||
	    grow(&names->places, &names->place_capacity, names->count + 1, sizeof(*place)) < 0)
		return NAME_FAILED;
	place = &names->places[names->count];
	*place = (struct name_place){names->text_used, (uint32_t)length, hash};
	if (length)
		memcpy(names->text + names->text_used, text, length);
	names->text[names->text_used + length] = '\0';
	names->text_used += length + 1;
	names->slots[s] = ++names->count;
	if (names->count > names->slot_count / 4 * 3 && rehash(names, names->slot_count * 2) < 0) {
		names->slots[s] = 0;
		names->count--;
		return NAME_FAILED;
	}
	return names->count - 1;
}

const char *names_text(const struct names *names, uint32_t name, size_t *length_out)
{
	if (name >= names->count)
		name = NAME_EMPTY;
	if (length_out)
		*length_out = names->places[name].length;
	return names->text + names->places[name].offset;
}
