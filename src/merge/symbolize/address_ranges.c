/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses, sorted by start, with a bound on how far back a search has to go.
 */
#include "merge/symbolize/address_ranges.h"

#include "merge/base/grow.h"

int address_ranges_add(struct address_ranges *address_ranges, uint64_t start, uint64_t end,
		       uint32_t what)
{
	if (grow(&address_ranges->list, &address_ranges->capacity, address_ranges->count + 1,
		 sizeof(*address_ranges->list)) < 0)
		return -ENOMEM;
	address_ranges->list[address_ranges->count++] =
		(struct address_range){.start = start, .end = end, .what = what};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct address_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

void address_ranges_sort(struct address_ranges *address_ranges)
{
	uint64_t reach = 0;

	if (!address_ranges->count)
		return;
	qsort(address_ranges->list, address_ranges->count, sizeof(*address_ranges->list), compare);
	for (size_t i = 0; i < address_ranges->count; i++) {
		if (address_ranges->list[i].end > reach)
			reach = address_ranges->list[i].end;
		address_ranges->list[i].reach = reach;
	}
}

const struct address_range *address_ranges_find(const struct address_ranges *address_ranges,
						uint64_t address)
{
	size_t low = 0, high = address_ranges->count; /* the first that starts behind address */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address_ranges->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- && address_ranges->list[i].reach > address;)
		if (address_ranges->list[i].end > address)
			return &address_ranges->list[i];
	return NULL;
}
