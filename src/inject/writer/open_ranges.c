/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/open_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"

static bool open_range(struct open_ranges *open, const struct open_range *range)
{
	if (open->count < OPEN_RANGES_MAX &&
	    !grow(&open->rows, &open->capacity, open->count + 1, sizeof(*open->rows)))
		open->rows[open->count++] = *range;
	return true;
}

static bool close_range(struct open_ranges *open, const struct open_range *end,
			struct open_range *closed)
{
	for (size_t i = open->count; i-- > 0;) {
		const struct open_range *range = &open->rows[i];

		if (range->is_start != end->is_start ||
		    (end->is_start
			     ? range->key != end->key
			     : range->thread_id != end->thread_id || range->domain != end->domain))
			continue;
		*closed = *range;
		open->count--;
		memmove(&open->rows[i], &open->rows[i + 1],
			(open->count - i) * sizeof(*open->rows));
		return true;
	}
	/* Another thread may end a range before its own events are read. */
	return !open->had_stop || open->count == OPEN_RANGES_MAX ||
	       (end->is_start && end->key > open->key_before);
}

bool open_ranges_note(struct open_ranges *open, const struct xt_record_range *record,
		      uint32_t thread_id, uint32_t triggers, struct open_range *closed)
{
	const struct open_range range = {
		.key = record->key,
		.domain = record->domain,
		.thread_id = thread_id,
		.is_start =
			record->operation == XT_RANGE_START || record->operation == XT_RANGE_END,
		.start_ns = record->time_ns,
		.triggers = triggers,
	};

	switch (record->operation) {
	case XT_RANGE_PUSH:
	case XT_RANGE_START:
		return open_range(open, &range);
	case XT_RANGE_POP:
	case XT_RANGE_END:
		return close_range(open, &range, closed);
	default:
		return true;
	}
}

bool open_ranges_take(struct open_ranges *open, struct open_range *range)
{
	if (!open->count)
		return false;
	*range = open->rows[--open->count];
	return true;
}

void open_ranges_free(struct open_ranges *open)
{
	free(open->rows);
	*open = (struct open_ranges){0};
}
