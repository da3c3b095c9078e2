/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing over keys that lie one behind the other. Runs on its owner's thread.
 */
#include "log/base/interner.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64

struct key_place {
	size_t offset;
	uint32_t bytes;
	uint32_t hash;
};

/* FNV-1a over 64 bits, folded. */
static uint32_t hash_of(const uint8_t *key, size_t key_bytes)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < key_bytes; i++)
		h = (h ^ key[i]) * UINT64_C(1099511628211);
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t *find_slot(const struct interner *keys, const void *key, size_t key_bytes,
			   uint32_t hash)
{
	size_t mask = keys->slot_count - 1, at = hash & mask;

	for (;; at = (at + 1) & mask) {
		uint32_t *slot = &keys->slots[at];
		const struct key_place *place = *slot ? &keys->places[*slot - 1] : NULL;

		if (!place ||
		    (place->hash == hash && place->bytes == key_bytes &&
		     (!key_bytes || !memcmp(keys->bytes + place->offset, key, key_bytes))))
			return slot;
	}
}

static bool grow_slots(struct interner *keys)
{
	size_t count = keys->slot_count ? keys->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < keys->count; i++) {
		size_t at = keys->places[i].hash & (count - 1);

		while (slots[at])
			at = (at + 1) & (count - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(keys->slots);
	keys->slots = slots;
	keys->slot_count = count;
	return true;
}

static bool make_room(struct interner *keys, size_t key_bytes)
{
	if ((keys->count + 1) * 2 > keys->slot_count && !grow_slots(keys))
		return false;
	if (keys->count == keys->capacity) {
		size_t capacity = keys->capacity ? keys->capacity * 2 : FIRST_SLOTS;
		struct key_place *places = reallocarray(keys->places, capacity, sizeof(*places));

		if (!places)
			return false;
		keys->places = places;
		keys->capacity = capacity;
	}
	if (keys->bytes_capacity - keys->bytes_used < key_bytes) {
		size_t capacity = keys->bytes_capacity * 2 + key_bytes + FIRST_SLOTS;
		uint8_t *bytes = realloc(keys->bytes, capacity);

		if (!bytes)
			return false;
		keys->bytes = bytes;
		keys->bytes_capacity = capacity;
	}
	return keys->count < UINT32_MAX;
}

uint32_t interner_find(const struct interner *keys, const void *key, size_t key_bytes)
{
	if (!keys->slot_count)
		return 0;
	return *find_slot(keys, key, key_bytes, hash_of(key, key_bytes));
}

uint32_t interner_id(struct interner *keys, const void *key, size_t key_bytes, bool *is_new)
{
	uint32_t hash = hash_of(key, key_bytes), known = interner_find(keys, key, key_bytes);

	*is_new = false;
	if (known)
		return known;
	if (key_bytes > UINT32_MAX || !make_room(keys, key_bytes))
		return 0;
	if (key_bytes)
		memcpy(keys->bytes + keys->bytes_used, key, key_bytes);
	keys->places[keys->count] = (struct key_place){keys->bytes_used, (uint32_t)key_bytes, hash};
	/* (Until it is in its slot, the search does not look at the new place.) */
	*find_slot(keys, key, key_bytes, hash) = (uint32_t)keys->count + 1;
	keys->bytes_used += key_bytes;
	*is_new = true;
	return (uint32_t)++keys->count;
}

const void *interner_at(const struct interner *keys, uint32_t id, size_t *key_bytes_out)
{
	const struct key_place *place = &keys->places[id - 1];

	*key_bytes_out = place->bytes;
	return keys->bytes ? keys->bytes + place->offset : (const uint8_t *)""; /* all are empty */
}

void interner_free(struct interner *keys)
{
	free(keys->places);
	free(keys->slots);
	free(keys->bytes);
	*keys = (struct interner){0};
}
