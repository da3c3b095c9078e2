/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/range_names.h"

#include "base/memory.h"
#include "log/base/compare.h"

void range_names_add(struct range_names *names, uint32_t domain, uint64_t key, uint32_t text)
{
	if (names->count >= UINT32_MAX)
		xt_out_of_memory(0);
	xt_grow(&names->rows, &names->capacity, names->count + 1, sizeof(*names->rows));
	names->rows[names->count] = (struct range_name){key, domain, text, (uint32_t)names->count};
	names->count++;
}

COMPARE_BY(compare, struct range_name, UP(domain) UP(key) UP(order))

void range_names_index(struct range_names *names)
{
	if (names->count)
		qsort(names->rows, names->count, sizeof(*names->rows), compare);
}

void range_names_free(struct range_names *names)
{
	free(names->rows);
	*names = (struct range_names){0};
}

uint32_t range_names_find(const struct range_names *names, uint32_t domain, uint64_t key)
{
	const struct range_name wanted = {key, domain, 0, UINT32_MAX};
	size_t low = FIRST_NOT(i, 0, names->count, compare(&names->rows[i], &wanted) < 0);

	if (!low || names->rows[low - 1].domain != domain || names->rows[low - 1].key != key)
		return 0;
	return names->rows[low - 1].text;
}
