/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/hash_table.h"

#include <stdlib.h>

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
