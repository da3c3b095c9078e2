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

static int enlarge(struct totals *totals)
{
	uint32_t slot_count = totals->slot_count ? totals->slot_count * 2 : TOTALS_FIRST_SLOTS;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t t = 0; t < totals->count; t++) {
		uint32_t s = hash_owner(&totals->entries[t].owner) & (slot_count - 1);

		while (slots[s])
			s = (s + 1) & (slot_count - 1);
		slots[s] = t + 1;
	}
	free(totals->slots);
	totals->slots = slots;
	totals->slot_count = slot_count;
	return 0;
}

/* The place of an owner that has none. */
static uint32_t add(struct totals *totals, const struct owner *owner)
{
	uint32_t s;

	if (totals->count >= totals->slot_count / 2 && enlarge(totals) < 0)
		return TOTAL_FAILED;
	if (grow(&totals->entries, &totals->capacity, totals->count + 1, sizeof(*totals->entries)) <
	    0)
		return TOTAL_FAILED;
	s = hash_owner(owner) & (totals->slot_count - 1);
	while (totals->slots[s])
		s = (s + 1) & (totals->slot_count - 1);
	totals->entries[totals->count].owner = *owner;
	totals->slots[s] = ++totals->count;
	return totals->count - 1;
}

static uint32_t find(const struct totals *totals, const struct owner *owner)
{
	uint32_t mask = totals->slot_count - 1;

	if (!totals->slot_count)
		return TOTAL_FAILED;
	for (uint32_t s = hash_owner(owner) & mask; totals->slots[s]; s = (s + 1) & mask)
		if (totals_is_of(&totals->entries[totals->slots[s] - 1], owner))
			return totals->slots[s] - 1;
	return TOTAL_FAILED;
}

uint32_t totals_search(struct totals *totals, struct owner owner)
{
	uint32_t place = find(totals, &owner);

	if (place == TOTAL_FAILED)
		place = add(totals, &owner);
	if (place != TOTAL_FAILED) {
		totals->entries[totals->last].next = place;
		totals->last = place;
	}
	return place;
}

void totals_free(struct totals *totals)
{
	free(totals->entries);
	free(totals->slots);
	*totals = (struct totals){0};
}
