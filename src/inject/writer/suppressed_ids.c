/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sparse set of 32-bit ids. Writer thread only.
 */
#include "inject/writer/suppressed_ids.h"

#include <stddef.h>
#include <stdlib.h>

#define PAGE_BITS  19 /* 64 KiB */
#define PAGE_COUNT (1u << (32 - PAGE_BITS))
#define PAGE_BYTES ((1u << PAGE_BITS) / 8)

static uint8_t *byte_of(const struct suppressed_ids *set, uint32_t id)
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
	byte = byte_of(set, correlation_id);
	if (byte)
		*byte |= (uint8_t)(1u << correlation_id % 8);
}

void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id)
{
	uint8_t *byte = byte_of(set, correlation_id);

	if (byte)
		*byte &= (uint8_t) ~(1u << correlation_id % 8);
}

bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id)
{
	const uint8_t *byte = byte_of(set, correlation_id);

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
