/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges sorted by start. Each stores the largest end so far, which bounds the backward
 * search.
 */
#include "merge/symbolize/address_ranges.h"

#include "base/memory.h"
#include "log/base/compare.h"

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end, uint32_t value)
{
	xt_append(ranges->list, ranges->count, ranges->capacity,
		  (struct address_range){.start = start, .end = end, .value = value});
}

COMPARE_BY(compare, struct address_range, UP(start) DOWN(end) UP(value))

void address_ranges_sort(struct address_ranges *ranges)
{
	uint64_t max_end = 0;

	if (!ranges->count)
		return;
	qsort(ranges->list, ranges->count, sizeof(*ranges->list), compare);
	for (size_t i = 0; i < ranges->count; i++) {
		if (ranges->list[i].end > max_end)
			max_end = ranges->list[i].end;
		ranges->list[i].max_end = max_end;
	}
}

const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address)
{
	size_t low = FIRST_NOT(i, 0, ranges->count, ranges->list[i].start <= address);

	for (size_t i = low; i-- && ranges->list[i].max_end > address;)
		if (ranges->list[i].end > address)
			return &ranges->list[i];
	return NULL;
}
