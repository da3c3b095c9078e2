/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/allocations.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/hash_table.h"

#define SLOTS_FIRST 1024u

/* The slot with this address, or the empty one where it belongs. */
static size_t find(const struct xt_allocations *table, uint64_t address)
{
	size_t mask = table->slot_count - 1, s = xt_hash_u64(address) & mask;

	while (table->slots[s].is_used && table->slots[s].address != address)
		s = (s + 1) & mask;
	return s;
}

static int reserve(struct xt_allocations *table)
{
	struct xt_allocations larger = {.count = table->count, .is_unbounded = table->is_unbounded};

	if (table->count >= XT_ALLOCATIONS_MAX && !table->is_unbounded)
		return -ENOSPC;
	if (table->count < table->slot_count / 2)
		return 0;
	larger.slot_count = table->slot_count ? table->slot_count * 2 : SLOTS_FIRST;
	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t s = 0; s < table->slot_count; s++)
		if (table->slots[s].is_used)
			larger.slots[find(&larger, table->slots[s].address)] = table->slots[s];
	free(table->slots);
	*table = larger;
	return 0;
}

int xt_allocations_add(struct xt_allocations *table, const struct xt_allocation *allocation,
		       struct xt_allocation *old_out)
{
	int error = reserve(table);
	struct xt_allocation *slot;

	if (error)
		return error;
	slot = &table->slots[find(table, allocation->address)];
	*old_out = *slot;
	table->count += !slot->is_used;
	*slot = *allocation;
	slot->is_used = true;
	return old_out->is_used;
}

/* Moves later entries into the hole, so that searches still reach them. */
static void close_hole(struct xt_allocations *table, size_t hole)
{
	size_t mask = table->slot_count - 1;

	for (size_t s = (hole + 1) & mask; table->slots[s].is_used; s = (s + 1) & mask) {
		size_t home = xt_hash_u64(table->slots[s].address) & mask;

		if (((s - home) & mask) < ((s - hole) & mask))
			continue;
		table->slots[hole] = table->slots[s];
		hole = s;
	}
	table->slots[hole].is_used = false;
}

bool xt_allocations_remove(struct xt_allocations *table, uint64_t address, uint64_t time_ns,
			   struct xt_allocation *old_out)
{
	size_t s = table->slot_count ? find(table, address) : 0;

	if (!table->slot_count || !table->slots[s].is_used || table->slots[s].time_ns > time_ns)
		return false;
	*old_out = table->slots[s];
	close_hole(table, s);
	table->count--;
	return true;
}

void xt_allocations_free(struct xt_allocations *table)
{
	free(table->slots);
	*table = (struct xt_allocations){.is_unbounded = table->is_unbounded};
}
