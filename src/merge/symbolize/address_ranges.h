/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses, which may stand inside others, and the innermost around an address.
 */
#ifndef XT_MERGE_ADDRESS_RANGES_H
#define XT_MERGE_ADDRESS_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start;
	uint64_t end;	/* exclusive */
	uint64_t reach; /* the largest end of all spans up to here, once in order */
	uint32_t what;	/* the caller's */
};

struct address_ranges {
	struct address_range *list; /* to be given back with free() */
	size_t count;
	size_t capacity;
};

/* 0 or -ENOMEM. */
int address_ranges_add(struct address_ranges *address_ranges, uint64_t start, uint64_t end,
		       uint32_t what);

/* Once, after all were added. */
void address_ranges_sort(struct address_ranges *address_ranges);

/* The one around address that starts last, and of those the smallest; or NULL. */
const struct address_range *address_ranges_find(const struct address_ranges *address_ranges,
						uint64_t address);

#endif
