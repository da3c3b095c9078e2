/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses, which may stand inside others, and the innermost around an address.
 */
#ifndef XT_MERGE_SPANS_H
#define XT_MERGE_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start;
	uint64_t end;	/* exclusive */
	uint64_t reach; /* the largest end of all spans up to here, once in order */
	uint32_t what;	/* the caller's */
};

struct spans {
	struct span *list; /* to be given back with free() */
	size_t count;
	size_t capacity;
};

/* 0 or -ENOMEM. */
int spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t what);

/* Once, after all were added. */
void spans_order(struct spans *spans);

/* The one around address that starts last, and of those the smallest; or NULL. */
const struct span *spans_find(const struct spans *spans, uint64_t address);

#endif
