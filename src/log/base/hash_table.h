/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash table of item numbers, with linear probing. The items are the caller's array; the table
 * knows only their hashes, so the caller compares keys. Zeros are an empty table. Belongs to one
 * thread.
 *
 *	for (slot = xt_hash_first(&table, hash); slot->item; slot = xt_hash_next(&table, slot))
 *		if (is_equal(&items[slot->item - 1], key))
 *			return slot->item;
 *
 * Lookup needs a table with slots: call xt_hash_reserve() first, or check slot_count. To insert
 * after an unsuccessful lookup, fill *slot.
 *
 * The interner maps byte strings to small numbers: equal keys get equal ids, counted from 1.
 */
#ifndef XT_LOG_HASH_TABLE_H
#define XT_LOG_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xt_hash_slot {
	uint32_t hash;
	uint32_t item; /* number of the item, from 1; 0: the slot is empty */
};

struct xt_hash_table {
	struct xt_hash_slot *slots;
	size_t slot_count; /* 0 or a power of two */
};

/* Makes room for item_count items in total. False if out of memory; the table is then unchanged. */
bool xt_hash_reserve(struct xt_hash_table *table, size_t item_count);

/* Frees the slots and empties the table. */
void xt_hash_free(struct xt_hash_table *table);

/* FNV-1a over 64 bits, folded (http://www.isthe.com/chongo/tech/comp/fnv/). */
uint32_t xt_hash_bytes(const void *data, size_t data_bytes);

/* The finaliser of MurmurHash3, folded (Appleby 2011, MurmurHash3.cpp, fmix64). */
static inline uint32_t xt_hash_u64(uint64_t value)
{
	value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
	value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (uint32_t)(value ^ value >> 33);
}

/* The first slot with this hash, or the empty slot that ends the search. */
static inline struct xt_hash_slot *xt_hash_first(const struct xt_hash_table *table, uint32_t hash)
{
	size_t at = hash & (table->slot_count - 1);

	while (table->slots[at].item && table->slots[at].hash != hash)
		at = (at + 1) & (table->slot_count - 1);
	return &table->slots[at];
}

/* The next slot with the hash of *slot, or the empty slot that ends the search. */
static inline struct xt_hash_slot *xt_hash_next(const struct xt_hash_table *table,
						const struct xt_hash_slot *slot)
{
	size_t at = (size_t)(slot - table->slots);

	do
		at = (at + 1) & (table->slot_count - 1);
	while (table->slots[at].item && table->slots[at].hash != slot->hash);
	return &table->slots[at];
}

/* Zeros are an empty interner. */
struct interner {
	struct interned_key *keys; /* by id - 1 */
	size_t count, capacity;
	struct xt_hash_table table;
	uint8_t *bytes; /* all keys, concatenated */
	size_t bytes_used, bytes_capacity;
};

/* Returns the key's id, or 0 if out of memory. *is_new: the key was added by this call. */
uint32_t interner_id(struct interner *interner, const void *key, size_t key_bytes, bool *is_new);

/* Returns the key's id, or 0 if it has none. */
uint32_t interner_find(const struct interner *interner, const void *key, size_t key_bytes);

/* Returns the key of an id. The pointer is valid until the next call of interner_id(). */
const void *interner_at(const struct interner *interner, uint32_t id, size_t *key_bytes_out);

/* Removes the newest key, whose id the next one gets. */
void interner_withdraw(struct interner *interner);

/* The memory of all tables. */
size_t interner_bytes(const struct interner *interner);

/* Frees all memory; the interner is empty afterwards. */
void interner_free(struct interner *interner);

#endif
