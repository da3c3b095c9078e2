/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/hash_table.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"

#define SLOTS_MIN 64

uint32_t xt_hash_bytes(const void *data, size_t data_bytes)
{
	const uint8_t *bytes = data;
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < data_bytes; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return (uint32_t)(hash ^ hash >> 32);
}

bool xt_hash_reserve(struct xt_hash_table *table, size_t item_count)
{
	size_t slot_count = table->slot_count ? table->slot_count : SLOTS_MIN;
	struct xt_hash_slot *slots;

	if (item_count >= UINT32_MAX)
		return false;
	while (slot_count < item_count * 2)
		slot_count *= 2;
	if (slot_count == table->slot_count)
		return true;
	slots = calloc(slot_count, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < table->slot_count; i++) {
		size_t at = table->slots[i].hash & (slot_count - 1);

		if (!table->slots[i].item)
			continue;
		while (slots[at].item)
			at = (at + 1) & (slot_count - 1);
		slots[at] = table->slots[i];
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = slot_count;
	return true;
}

void xt_hash_free(struct xt_hash_table *table)
{
	free(table->slots);
	*table = (struct xt_hash_table){0};
}

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

/* Eight bytes at a time: the writer thread hashes every stack. */
static uint32_t hash_key(const void *key, size_t key_bytes)
{
	const uint8_t *bytes = key;
	uint64_t hash = UINT64_C(0x2545f4914f6cdd1d) ^ key_bytes, word;

	for (; key_bytes >= sizeof(word); bytes += sizeof(word), key_bytes -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	word = 0;
	if (key_bytes)
		memcpy(&word, bytes, key_bytes);
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(hash ^ hash >> 32);
}

static bool make_room(struct interner *interner, size_t key_bytes)
{
	return xt_hash_reserve(&interner->table, interner->count + 1) &&
	       !grow(interner->keys, interner->capacity, interner->count + 1) &&
	       !grow(interner->bytes, interner->bytes_capacity, interner->bytes_used + key_bytes);
}

uint32_t interner_find(const struct interner *interner, const void *key, size_t key_bytes)
{
	if (!interner->count)
		return 0;
	return find(interner, key, key_bytes, hash_key(key, key_bytes))->item;
}

uint32_t interner_id(struct interner *interner, const void *key, size_t key_bytes, bool *is_new)
{
	uint32_t hash = hash_key(key, key_bytes);
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

void interner_withdraw(struct interner *interner)
{
	size_t bytes;
	const void *key = interner_at(interner, (uint32_t)interner->count, &bytes);

	/* No other search passes over the slot of the newest key. */
	*find(interner, key, bytes, hash_key(key, bytes)) = (struct xt_hash_slot){0};
	interner->bytes_used -= bytes;
	interner->count--;
}

size_t interner_bytes(const struct interner *interner)
{
	return interner->table.slot_count * sizeof(*interner->table.slots) +
	       interner->capacity * sizeof(*interner->keys) + interner->bytes_capacity;
}

void interner_free(struct interner *interner)
{
	free(interner->keys);
	free(interner->bytes);
	xt_hash_free(&interner->table);
	*interner = (struct interner){0};
}
