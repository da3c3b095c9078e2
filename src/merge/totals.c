/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by (stack, API, shape).
 */
#include "merge/totals.h"

#include <errno.h>
#include <stdlib.h>

#define TOTALS_FIRST_SIZE 1024u

static struct total *find_place(struct total *entries, uint32_t size, uint32_t stack, uint32_t api,
				uint32_t shape)
{
	uint64_t key = ((uint64_t)stack << 32 | shape) ^ (uint64_t)api << 52;
	uint32_t s = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (size - 1);

	while (entries[s].kernel_count &&
	       (entries[s].stack != stack || entries[s].shape != shape || entries[s].api != api))
		s = (s + 1) & (size - 1);
	return &entries[s];
}

static int enlarge(struct totals *totals)
{
	uint32_t size = totals->size ? totals->size * 2 : TOTALS_FIRST_SIZE;
	struct total *entries = calloc(size, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (uint32_t s = 0; s < totals->size; s++) {
		const struct total *total = &totals->entries[s];

		if (total->kernel_count)
			*find_place(entries, size, total->stack, total->api, total->shape) = *total;
	}
	free(totals->entries);
	totals->entries = entries;
	totals->size = size;
	return 0;
}

int totals_add(struct totals *totals, uint32_t stack, uint32_t api, uint32_t shape,
	       uint64_t duration_ns)
{
	struct total *total;

	if (totals->used >= totals->size / 2) {
		int error = enlarge(totals);

		if (error)
			return error;
	}
	total = find_place(totals->entries, totals->size, stack, api, shape);
	if (!total->kernel_count) {
		*total = (struct total){.stack = stack, .shape = shape, .api = api};
		totals->used++;
	}
	total->gpu_ns += duration_ns;
	total->kernel_count++;
	return 0;
}

void totals_free(struct totals *totals)
{
	free(totals->entries);
	*totals = (struct totals){0};
}
