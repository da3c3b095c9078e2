/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by owner.
 */
#include "merge/sums/aggregate.h"

#include "merge/base/grow.h"

#define TOTALS_FIRST_SLOTS 2048u

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

static int enlarge(struct aggregate *aggregate)
{
	uint32_t slot_count =
		aggregate->slot_count ? aggregate->slot_count * 2 : TOTALS_FIRST_SLOTS;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t t = 0; t < aggregate->count; t++) {
		uint32_t s = hash_owner(&aggregate->entries[t].owner) & (slot_count - 1);

		while (slots[s])
			s = (s + 1) & (slot_count - 1);
		slots[s] = t + 1;
	}
	free(aggregate->slots);
	aggregate->slots = slots;
	aggregate->slot_count = slot_count;
	return 0;
}

/* The place of an owner that has none. */
static uint32_t add(struct aggregate *aggregate, const struct owner *owner)
{
	uint32_t s;

	if (aggregate->count >= aggregate->slot_count / 2 && enlarge(aggregate) < 0)
		return TOTAL_FAILED;
	if (grow(&aggregate->entries, &aggregate->capacity, aggregate->count + 1,
		 sizeof(*aggregate->entries)) < 0)
		return TOTAL_FAILED;
	s = hash_owner(owner) & (aggregate->slot_count - 1);
	while (aggregate->slots[s])
		s = (s + 1) & (aggregate->slot_count - 1);
	aggregate->entries[aggregate->count].owner = *owner;
	aggregate->slots[s] = ++aggregate->count;
	return aggregate->count - 1;
}

static uint32_t find(const struct aggregate *aggregate, const struct owner *owner)
{
	uint32_t mask = aggregate->slot_count - 1;

	if (!aggregate->slot_count)
		return TOTAL_FAILED;
	for (uint32_t s = hash_owner(owner) & mask; aggregate->slots[s]; s = (s + 1) & mask)
		if (total_is_of(&aggregate->entries[aggregate->slots[s] - 1], owner))
			return aggregate->slots[s] - 1;
	return TOTAL_FAILED;
}

uint32_t aggregate_search(struct aggregate *aggregate, struct owner owner)
{
	uint32_t place = find(aggregate, &owner);

	if (place == TOTAL_FAILED)
		place = add(aggregate, &owner);
	if (place != TOTAL_FAILED) {
		aggregate->entries[aggregate->last].next = place;
		aggregate->last = place;
	}
	return place;
}

void aggregate_free(struct aggregate *aggregate)
{
	free(aggregate->entries);
	free(aggregate->slots);
	*aggregate = (struct aggregate){0};
}
