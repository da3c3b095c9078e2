/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses, sorted by start, with a bound on how far back a search has to go.
 */
#include "merge/symbolize/spans.h"

#include "merge/base/grow.h"

int spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t what)
{
	if (grow(&spans->list, &spans->capacity, spans->count + 1, sizeof(*spans->list)) < 0)
		return -ENOMEM;
	spans->list[spans->count++] = (struct span){.start = start, .end = end, .what = what};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

void spans_order(struct spans *spans)
{
	uint64_t reach = 0;

	if (!spans->count)
		return;
	qsort(spans->list, spans->count, sizeof(*spans->list), compare);
	for (size_t i = 0; i < spans->count; i++) {
		if (spans->list[i].end > reach)
			reach = spans->list[i].end;
		spans->list[i].reach = reach;
	}
}

const struct span *spans_find(const struct spans *spans, uint64_t address)
{
	size_t low = 0, high = spans->count; /* the first that starts behind address */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- && spans->list[i].reach > address;)
		if (spans->list[i].end > address)
			return &spans->list[i];
	return NULL;
}
