/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges each sorted batch with the part of the union that it may touch. Work of several streams
 * arrives almost in order, so that part is short.
 */
#include "live/spans.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"

static int compare(const void *a, const void *b)
{
	const struct live_span *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* The first row that ends at or after `ns`. */
static size_t find(const struct live_spans *spans, uint64_t ns)
{
	size_t low = 0, high = spans->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->rows[middle].end_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Appends a span that starts no earlier than the last row. */
static void append(struct live_spans *spans, size_t first, struct live_span span)
{
	struct live_span *last = spans->count > first ? &spans->rows[spans->count - 1] : NULL;

	if (!last || span.start_ns > last->end_ns) {
		spans->rows[spans->count++] = span;
		spans->covered_ns += span.end_ns - span.start_ns;
	} else if (span.end_ns > last->end_ns) {
		spans->covered_ns += span.end_ns - last->end_ns;
		last->end_ns = span.end_ns;
		last->last = span.last;
	}
}

static bool is_sorted(const struct live_span *batch, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (batch[i].start_ns < batch[i - 1].start_ns)
			return false;
	return true;
}

/* Clips to the horizon. Returns how many spans are left, sorted. */
static size_t prepare(const struct live_spans *spans, struct live_span *batch, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (batch[i].start_ns < spans->horizon_ns)
			batch[i].start_ns = spans->horizon_ns;
		if (batch[i].start_ns < batch[i].end_ns)
			batch[kept++] = batch[i];
	}
	if (!is_sorted(batch, kept))
		qsort(batch, kept, sizeof(*batch), compare);
	return kept;
}

void live_spans_forget(struct live_spans *spans, size_t count, uint64_t horizon_ns)
{
	if (horizon_ns > spans->horizon_ns)
		spans->horizon_ns = horizon_ns;
	spans->count -= count;
	if (count)
		memmove(spans->rows, spans->rows + count, spans->count * sizeof(*spans->rows));
}

static void forget_oldest(struct live_spans *spans)
{
	size_t count = spans->count - LIVE_SPANS_MAX / 2;

	if (spans->count > LIVE_SPANS_MAX)
		live_spans_forget(spans, count, spans->rows[count - 1].end_ns);
}

int live_spans_add(struct live_spans *spans, struct live_span *batch, size_t count)
{
	size_t first, tail_count, t = 0, b = 0;

	count = prepare(spans, batch, count);
	if (!count)
		return 0;
	first = find(spans, batch[0].start_ns);
	tail_count = spans->count - first;
	if (grow(&spans->rows, &spans->capacity, spans->count + count, sizeof(*spans->rows)) ||
	    grow(&spans->tail, &spans->tail_capacity, tail_count, sizeof(*spans->tail)))
		return -ENOMEM;
	if (tail_count)
		memcpy(spans->tail, spans->rows + first, tail_count * sizeof(*spans->tail));
	for (size_t i = 0; i < tail_count; i++)
		spans->covered_ns -= spans->tail[i].end_ns - spans->tail[i].start_ns;
	spans->count = first;
	while (t < tail_count || b < count) {
		bool is_old = b == count ||
			      (t < tail_count && spans->tail[t].start_ns <= batch[b].start_ns);

		append(spans, first, is_old ? spans->tail[t++] : batch[b++]);
	}
	forget_oldest(spans);
	return 0;
}

void live_spans_free(struct live_spans *spans)
{
	free(spans->rows);
	free(spans->tail);
	*spans = (struct live_spans){0};
}
