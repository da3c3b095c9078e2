/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/interner.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

struct interned_key {
	size_t offset;
	uint32_t bytes;
};

static bool is_key(const struct interner *interner, uint32_t id, const void *key, size_t key_bytes)
{
	const struct interned_key *known = &interner->keys[id - 1];

	return known->bytes == key_bytes &&
	       (!key_bytes || !memcmp(interner->bytes + known->offset, key, key_bytes));
}

/* The slot of the key, or the empty slot to put it in. */
static struct xt_hash_slot *find(const struct interner *interner, const void *key, size_t key_bytes,
				 uint32_t hash)
{
	struct xt_hash_slot *slot = xt_hash_first(&interner->table, hash);

	while (slot->item && !is_key(interner, slot->item, key, key_bytes))
		slot = xt_hash_next(&interner->table, slot);
	return slot;
}

static bool make_room(struct interner *interner, size_t key_bytes)
{
	if (!xt_hash_reserve(&interner->table, interner->count + 1))
		return false;
	if (interner->count == interner->capacity) {
		size_t capacity = interner->capacity ? interner->capacity * 2 : FIRST_CAPACITY;
		struct interned_key *keys = reallocarray(interner->keys, capacity, sizeof(*keys));

		if (!keys)
			return false;
		interner->keys = keys;
		interner->capacity = capacity;
	}
	if (interner->bytes_capacity - interner->bytes_used < key_bytes) {
		size_t capacity = interner->bytes_capacity * 2 + key_bytes + FIRST_CAPACITY;
		uint8_t *bytes = realloc(interner->bytes, capacity);

		if (!bytes)
			return false;
		interner->bytes = bytes;
		interner->bytes_capacity = capacity;
	}
	return true;
}

uint32_t interner_find(const struct interner *interner, const void *key, size_t key_bytes)
{
	if (!interner->count)
		return 0;
	return find(interner, key, key_bytes, xt_hash_bytes(key, key_bytes))->item;
}

uint32_t interner_id(struct interner *interner, const void *key, size_t key_bytes, bool *is_new)
{
	uint32_t hash = xt_hash_bytes(key, key_bytes);
	struct xt_hash_slot *slot;

	*is_new = false;
	if (key_bytes > UINT32_MAX || !make_room(interner, key_bytes))
		return 0;
	slot = find(interner, key, key_bytes, hash);
	if (slot->item)
		return slot->item;
	if (key_bytes)
		memcpy(interner->bytes + interner->bytes_used, key, key_bytes);
	interner->keys[interner->count] =
		(struct interned_key){interner->bytes_used, (uint32_t)key_bytes};
	interner->bytes_used += key_bytes;
	*slot = (struct xt_hash_slot){hash, (uint32_t)++interner->count};
	*is_new = true;
	return slot->item;
}

const void *interner_at(const struct interner *interner, uint32_t id, size_t *key_bytes_out)
{
	const struct interned_key *key = &interner->keys[id - 1];

	*key_bytes_out = key->bytes;
	/* If all keys are empty, there are no bytes. */
	return interner->bytes ? interner->bytes + key->offset : (const uint8_t *)"";
}

void interner_free(struct interner *interner)
{
	free(interner->keys);
	free(interner->bytes);
	xt_hash_free(&interner->table);
	*interner = (struct interner){0};
}
