/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns spans to lanes without overlap.
 */
#include "merge/tracks/lanes.h"

#include "base/memory.h"

/* The index at which a span belongs in a lane, or -1 if it would overlap with another. */
static int64_t place_in_lane(const struct lane *lane, uint64_t start_ns, uint64_t end_ns,
			     bool not_before)
{
	uint32_t low = 0,
		 high = lane->span_count; /* finds the first span that ends after start_ns */

	if (start_ns < lane->forgotten_until_ns)
		return -1;
	if (!high || lane->spans[high - 1].end_ns <= start_ns)
		return (int64_t)high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lane->spans[middle].end_ns <= start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (lane->spans[low].start_ns < end_ns ||
	    (not_before && lane->spans[low].start_ns == end_ns))
		return -1;
	return (int64_t)low;
}

static void forget_spans(struct lane *lane)
{
	uint32_t dropped = lane->span_count / 2;

	lane->forgotten_until_ns = lane->spans[dropped - 1].end_ns;
	lane->span_count -= dropped;
	memmove(lane->spans, lane->spans + dropped, lane->span_count * sizeof(*lane->spans));
}

static void put_in_lane(struct lane *lane, uint32_t place, uint64_t start_ns, uint64_t end_ns)
{
	if (place && lane->spans[place - 1].end_ns == start_ns) {
		lane->spans[place - 1].end_ns = end_ns;
		return;
	}
	if (lane->span_count == LANE_SPANS_MAX) {
		uint32_t before = lane->span_count;

		forget_spans(lane);
		before -= lane->span_count;
		/* It belongs among the dropped spans, with which no later span can overlap. */
		if (place < before)
			return;
		place -= before;
	}
	xt_grow(&lane->spans, &lane->span_capacity, lane->span_count + 1, sizeof(*lane->spans));
	memmove(&lane->spans[place + 1], &lane->spans[place],
		(lane->span_count - place) * sizeof(*lane->spans));
	lane->spans[place] = (struct lane_span){start_ns, end_ns};
	lane->span_count++;
}

static void add_lane(struct lanes *lanes)
{
	lanes->list = xt_reallocarray(lanes->list, lanes->count + 1, sizeof(*lanes->list));
	lanes->list[lanes->count++] = (struct lane){0};
}

int lanes_place(struct lanes *lanes, uint64_t start_ns, uint64_t end_ns)
{
	int64_t place = -1;
	uint32_t l;

	for (l = 0; l < lanes->count; l++) {
		place = place_in_lane(&lanes->list[l], start_ns, end_ns, lanes->not_before);
		if (place >= 0)
			break;
	}
	if (l == LANES_MAX)
		return LANE_NONE;
	if (l == lanes->count)
		add_lane(lanes);
	put_in_lane(&lanes->list[l], place < 0 ? 0 : (uint32_t)place, start_ns, end_ns);
	return (int)l;
}

void lanes_free(struct lanes *lanes)
{
	if (!lanes->list)
		return;
	for (uint32_t l = 0; l < lanes->count; l++)
		free(lanes->list[l].spans);
	free(lanes->list);
	lanes->list = NULL;
	lanes->count = 0;
}
