/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned keys: a hash table with open addressing. Suppressed ids: a sparse set of 32-bit ids.
 * Writer thread only; may allocate.
 */
#include "inject/writer/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/memory/budget.h"

#define FIRST_SLOTS   256
#define OWN_KEY_BYTES (32u << 10) /* touched only as far as used */
#define OWN_SLOTS     4096	  /* up to this size, not charged to the budget */

struct intern_slot {
	uint64_t hash;
	size_t key; /* offset in keys */
	uint32_t key_bytes;
	uint32_t id; /* 0: empty */
};

static uint64_t hash_bytes(const uint8_t *data, size_t bytes)
{
	uint64_t h = UINT64_C(0x2545f4914f6cdd1d) ^ bytes;
	uint64_t word;

	for (; bytes >= sizeof(word); data += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, data, bytes);
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

/* The bytes of a slot table that are charged to the budget. */
static size_t slots_budget(size_t slot_count)
{
	return slot_count > OWN_SLOTS ? slot_count * sizeof(struct intern_slot) : 0;
}

int intern_init(struct intern *table, size_t keys_limit_bytes)
{
	memset(table, 0, sizeof(*table));
	table->keys_limit = keys_limit_bytes;
	table->slot_count = FIRST_SLOTS;
	table->keys_capacity = OWN_KEY_BYTES;
	table->slots = calloc(FIRST_SLOTS, sizeof(*table->slots));
	table->keys = malloc(OWN_KEY_BYTES);
	if (table->slots && table->keys)
		return 0;
	intern_free(table);
	return -ENOMEM;
}

void intern_free(struct intern *table)
{
	if (table->keys)
		budget_give_back(slots_budget(table->slot_count) + table->keys_capacity -
				 OWN_KEY_BYTES);
	free(table->slots);
	free(table->keys);
	memset(table, 0, sizeof(*table));
}

static bool grow_slots(struct intern *table)
{
	size_t count = table->slot_count * 2;
	size_t more = slots_budget(count) - slots_budget(table->slot_count);
	struct intern_slot *slots;

	if (more && !budget_take(more))
		return false;
	slots = calloc(count, sizeof(*slots));
	if (!slots) {
		budget_give_back(more);
		return false;
	}
	for (size_t i = 0; i < table->slot_count; i++) {
		size_t at = table->slots[i].hash & (count - 1);

		if (!table->slots[i].id)
			continue;
		while (slots[at].id)
			at = (at + 1) & (count - 1);
		slots[at] = table->slots[i];
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = count;
	return true;
}

static bool grow_keys(struct intern *table, size_t want)
{
	size_t capacity = table->keys_capacity * 2;
	uint8_t *keys;

	while (capacity < want)
		capacity *= 2;
	if (!budget_take(capacity - table->keys_capacity))
		return false;
	keys = realloc(table->keys, capacity);
	if (!keys) {
		budget_give_back(capacity - table->keys_capacity);
		return false;
	}
	table->keys = keys;
	table->keys_capacity = capacity;
	return true;
}

static bool has_room(const struct intern *table, size_t key_bytes)
{
	return table->used * 2 < table->slot_count &&
	       table->keys_used + key_bytes <= table->keys_capacity &&
	       table->keys_used + key_bytes <= table->keys_limit;
}

/* Forgets all keys; they get new ids. */
static void intern_forget(struct intern *table)
{
	memset(table->slots, 0, table->slot_count * sizeof(*table->slots));
	table->used = 0;
	table->keys_used = 0;
}

/* If no memory is available, forgets all keys. */
static bool make_room(struct intern *table, size_t key_bytes)
{
	if (has_room(table, key_bytes))
		return true;
	if (table->keys_used + key_bytes > table->keys_limit)
		intern_forget(table);
	if (table->used * 2 >= table->slot_count && !grow_slots(table))
		intern_forget(table);
	if (table->keys_used + key_bytes > table->keys_capacity &&
	    !grow_keys(table, table->keys_used + key_bytes))
		intern_forget(table);
	return has_room(table, key_bytes);
}

static struct intern_slot *find_slot(struct intern *table, uint64_t hash, const void *key,
				     size_t key_bytes)
{
	size_t at = hash & (table->slot_count - 1);

	for (;; at = (at + 1) & (table->slot_count - 1)) {
		struct intern_slot *slot = &table->slots[at];

		if (!slot->id || (slot->hash == hash && slot->key_bytes == key_bytes &&
				  !memcmp(table->keys + slot->key, key, key_bytes)))
			return slot;
	}
}

uint32_t intern_id(struct intern *table, const void *key, size_t key_bytes, bool *is_new)
{
	uint64_t hash = hash_bytes(key, key_bytes);
	struct intern_slot *slot = find_slot(table, hash, key, key_bytes);

	*is_new = false;
	if (slot->id)
		return slot->id;
	if (!make_room(table, key_bytes))
		return 0;
	slot = find_slot(table, hash, key, key_bytes);
	slot->hash = hash;
	slot->key = table->keys_used;
	slot->key_bytes = (uint32_t)key_bytes;
	slot->id = ++table->last_id;
	if (key_bytes)
		memcpy(table->keys + table->keys_used, key, key_bytes);
	table->keys_used += key_bytes;
	table->used++;
	table->newest = slot;
	*is_new = true;
	return slot->id;
}

/* The newest key: no other search passes over its slot. */
void intern_withdraw(struct intern *table)
{
	table->keys_used = table->newest->key;
	table->used--;
	memset(table->newest, 0, sizeof(*table->newest));
}

#define PAGE_BITS  19 /* 64 KiB */
#define PAGE_COUNT (1u << (32 - PAGE_BITS))
#define PAGE_BYTES ((1u << PAGE_BITS) / 8)

static uint8_t *suppressed_byte(const struct suppressed_ids *set, uint32_t id)
{
	uint8_t *page = set->pages ? set->pages[id >> PAGE_BITS] : NULL;

	return page ? &page[(id & ((1u << PAGE_BITS) - 1)) / 8] : NULL;
}

/* Ids are nearly ascending, so a new page is needed rarely. */
static void make_page(struct suppressed_ids *set, uint32_t number)
{
	uint32_t *place = &set->made[set->made_count % SKIPPED_PAGES_MAX];

	if (set->made_count >= SKIPPED_PAGES_MAX) {
		free(set->pages[*place]);
		set->pages[*place] = NULL;
	}
	set->pages[number] = calloc(1, PAGE_BYTES);
	if (!set->pages[number])
		return;
	*place = number;
	set->made_count++;
}

void suppressed_ids_add(struct suppressed_ids *set, uint32_t correlation_id)
{
	uint8_t *byte;

	set->count++;
	if (!set->pages)
		set->pages = calloc(PAGE_COUNT, sizeof(*set->pages));
	if (!set->pages)
		return;
	if (!set->pages[correlation_id >> PAGE_BITS])
		make_page(set, correlation_id >> PAGE_BITS);
	byte = suppressed_byte(set, correlation_id);
	if (byte)
		*byte |= (uint8_t)(1u << correlation_id % 8);
}

void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id)
{
	uint8_t *byte = suppressed_byte(set, correlation_id);

	if (byte)
		*byte &= (uint8_t) ~(1u << correlation_id % 8);
}

bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id)
{
	const uint8_t *byte = suppressed_byte(set, correlation_id);

	return byte && *byte >> correlation_id % 8 & 1;
}

void suppressed_ids_forget(struct suppressed_ids *set)
{
	for (size_t i = 0; set->pages && i < PAGE_COUNT; i++)
		free(set->pages[i]);
	free(set->pages);
	set->pages = NULL;
}

void suppressed_ids_free(struct suppressed_ids *set)
{
	suppressed_ids_forget(set);
	*set = (struct suppressed_ids){0};
}
