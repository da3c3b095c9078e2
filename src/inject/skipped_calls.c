/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sparse set of 32-bit ids. Writer thread only.
 */
#include "inject/skipped_calls.h"

#include <stddef.h>
#include <stdlib.h>

#define PAGE_BITS  19 /* 64 KiB */
#define PAGE_COUNT (1u << (32 - PAGE_BITS))
#define PAGE_BYTES ((1u << PAGE_BITS) / 8)

static uint8_t *byte_of(const struct skipped_calls *set, uint32_t id)
{
	uint8_t *page = set->pages ? set->pages[id >> PAGE_BITS] : NULL;

	return page ? &page[(id & ((1u << PAGE_BITS) - 1)) / 8] : NULL;
}

void skipped_calls_add(struct skipped_calls *set, uint32_t correlation_id)
{
	uint8_t **page;

	set->count++;
	if (!set->pages)
		set->pages = calloc(PAGE_COUNT, sizeof(*set->pages));
	if (!set->pages)
		return;
	page = &set->pages[correlation_id >> PAGE_BITS];
	if (!*page)
		*page = calloc(1, PAGE_BYTES);
	if (*page)
		*byte_of(set, correlation_id) |= (uint8_t)(1u << correlation_id % 8);
}

void skipped_calls_remove(struct skipped_calls *set, uint32_t correlation_id)
{
	uint8_t *byte = byte_of(set, correlation_id);

	if (byte)
		*byte &= (uint8_t) ~(1u << correlation_id % 8);
}

bool skipped_calls_has(const struct skipped_calls *set, uint32_t correlation_id)
{
	const uint8_t *byte = byte_of(set, correlation_id);

	return byte && *byte >> correlation_id % 8 & 1;
}

void skipped_calls_forget(struct skipped_calls *set)
{
	for (size_t i = 0; set->pages && i < PAGE_COUNT; i++)
		free(set->pages[i]);
	free(set->pages);
	set->pages = NULL;
}

void skipped_calls_free(struct skipped_calls *set)
{
	skipped_calls_forget(set);
	*set = (struct skipped_calls){0};
}
