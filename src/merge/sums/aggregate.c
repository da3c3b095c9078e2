/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by owner.
 */
#include "merge/sums/aggregate.h"

#include "base/tables.h"

static uint32_t hash_owner(const struct owner *owner)
{
	uint64_t h = ((uint64_t)owner->what << 32 | owner->stack) ^ (uint64_t)owner->leaf << 61 ^
		     (uint64_t)owner->api << 49;

	if (owner->stream | owner->thread)
		h ^= ((uint64_t)owner->stream << 32 | owner->thread) * 0xa0761d6478bd642fu;
	if (owner->range | owner->creation | owner->root | owner->marks)
		h ^= (((uint64_t)owner->creation << 32 | owner->range) * 0xc2b2ae3d27d4eb4fu) ^
		     ((uint64_t)owner->root << 17 | owner->marks) * 0xd6e8feb86659fd93u;
	h *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

static bool is_plain(const struct owner *owner)
{
	return owner->leaf == LEAF_KERNEL && owner->stack &&
	       !(owner->creation | owner->root | owner->stream | owner->thread | owner->marks);
}

void aggregate_index_all(struct aggregate *aggregate)
{
	xt_hash_require(&aggregate->table, aggregate->count);
	for (uint32_t e = 0; e < aggregate->count; e++) {
		struct total *entry = &aggregate->entries[e];
		uint32_t hash = hash_owner(&entry->owner);
		struct xt_hash_slot *slot = xt_hash_first(&aggregate->table, hash);

		while (slot->item)
			slot = xt_hash_next(&aggregate->table, slot);
		*slot = (struct xt_hash_slot){hash, e + 1};
		entry->is_plain = is_plain(&entry->owner);
	}
}

/* Appends an owner that has no entry yet. Returns the number of the entry, from 1. */
static uint32_t aggregate_add(struct aggregate *aggregate, const struct owner *owner)
{
	xt_grow(aggregate->entries, aggregate->capacity, aggregate->count + 1);
	aggregate->entries[aggregate->count].owner = *owner;
	aggregate->entries[aggregate->count].is_plain = is_plain(owner);
	return ++aggregate->count;
}

uint32_t aggregate_search(struct aggregate *aggregate, struct owner owner)
{
	uint32_t hash = hash_owner(&owner), place;
	struct xt_hash_slot *slot;

	if (aggregate->count >= aggregate->table.slot_count / 2)
		xt_hash_require(&aggregate->table, (size_t)aggregate->count + 1);
	slot = xt_hash_first(&aggregate->table, hash);
	while (slot->item && !total_is_of(&aggregate->entries[slot->item - 1], &owner))
		slot = xt_hash_next(&aggregate->table, slot);
	if (!slot->item)
		*slot = (struct xt_hash_slot){hash, aggregate_add(aggregate, &owner)};
	place = slot->item - 1;
	aggregate->entries[aggregate->last].next = place;
	aggregate->last = place;
	return place;
}

void aggregate_free(struct aggregate *aggregate)
{
	free(aggregate->entries);
	xt_hash_free(&aggregate->table);
	*aggregate = (struct aggregate){0};
}
