/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges, possibly nested. Finds the innermost range around an address.
 */
#ifndef XT_MERGE_ADDRESS_RANGES_H
#define XT_MERGE_ADDRESS_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start;
	uint64_t end;	  /* exclusive */
	uint64_t max_end; /* largest end of this and all earlier ranges, after sorting */
	uint32_t value;	  /* of the caller */
};

struct address_ranges {
	struct address_range *list; /* owner frees it */
	size_t count;
	size_t capacity;
};

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			uint32_t value);

/* Call once, after the last address_ranges_add(). */
void address_ranges_sort(struct address_ranges *ranges);

/* Returns the range around address that starts last, the smallest of several, or NULL. */
const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address);

#endif
