/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX in the database. A range becomes a row when it ends, or at the end of the log.
 *
 * A range is popped by its own thread and domain. Any thread may end a started range, and its
 * events may come earlier in the log. Such an end waits for the start.
 */
#include "merge/export/sqlite/sqlite_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/read/range_values.h"
#include "merge/reading.h"

#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/sums/build_tree_ranges.h"

#define SEARCH_MAX 4096 /* open ranges to search for the one that ends */

/*
 * Writes a range. The end event, if any, gives the end time and more values. Returns 0 or -ENOMEM.
 */
static int put_row(struct sink *sink, const struct process *process, const struct open_range *range,
		   const char *kind, const struct open_range *end)
{
	struct sqlite *s = sink->state;
	uint32_t end_values = end && end != range ? end->values : 0;
	char *json = NULL;

	if (range->values || end_values) {
		json = range_values_json(process->model, range->values, end_values);
		if (!json)
			return -ENOMEM;
	}

	sqlite_number(s, INSERT_RANGE, 1, s->process_id);
	if (range->thread)
		sqlite_number(s, INSERT_RANGE, 2, s->thread_base + range->thread);
	else
		sqlite_null(s, INSERT_RANGE, 2);
	sqlite_number(s, INSERT_RANGE, 3, range->name);
	sqlite_text(s, INSERT_RANGE, 4, kind);
	sqlite_number(s, INSERT_RANGE, 5, range->time_ns);
	if (end)
		sqlite_number(s, INSERT_RANGE, 6,
			      end->time_ns > range->time_ns ? end->time_ns - range->time_ns : 0);
	else
		sqlite_null(s, INSERT_RANGE, 6);
	if (json)
		sqlite_text(s, INSERT_RANGE, 7, json);
	else
		sqlite_null(s, INSERT_RANGE, 7);
	sqlite_put(sink, INSERT_RANGE);
	free(json);
	return 0;
}

static int keep(struct open_ranges *open, const struct open_range *range)
{
	if (grow(&open->rows, &open->capacity, open->count + 1, sizeof(*open->rows)) < 0)
		return -ENOMEM;
	open->rows[open->count++] = *range;
	return 0;
}

/* Removes the most recently opened range that matches. */
static bool take(struct open_ranges *open, const struct open_range *range, bool by_key,
		 struct open_range *out)
{
	size_t i = open->count;

	for (size_t searched = 0; i && searched < SEARCH_MAX; i--, searched++) {
		const struct open_range *row = &open->rows[i - 1];

		if (by_key ? row->key == range->key
			   : row->thread == range->thread && row->domain == range->domain)
			break;
		if (searched == SEARCH_MAX - 1)
			return false;
	}
	if (!i)
		return false;
	*out = open->rows[i - 1];
	memmove(&open->rows[i - 1], &open->rows[i], (open->count - i) * sizeof(*open->rows));
	open->count--;
	return true;
}

int sqlite_put_range(struct sink *sink, const struct process *process, const struct xt_chunk *chunk,
		     uint32_t row)
{
	struct sqlite *s = sink->state;
	struct names *names = process->names->shown;
	struct open_range other,
		range = {
			.time_ns = sqlite_time(process, xt_chunk_u64(chunk, XT_RANGE_TIME_NS)[row]),
			.key = xt_chunk_u64(chunk, XT_RANGE_KEY)[row],
			.thread = id_or_none(xt_chunk_u64(chunk, XT_RANGE_THREAD)[row]),
			.domain = id_or_none(xt_chunk_u64(chunk, XT_RANGE_DOMAIN)[row]),
			.values = id_or_none(xt_chunk_u64(chunk, XT_RANGE_VALUES)[row]),
		};

	if (range.thread >= process->model->threads.count ||
	    !process->model->threads.rows[range.thread].tid)
		range.thread = 0;
	range.name = range_label(names, process->model, range.domain,
				 id_or_none(xt_chunk_u64(chunk, XT_RANGE_TEXT)[row]), "", "");
	if (range.name == NAME_FAILED)
		return -ENOMEM;
	switch (xt_chunk_u64(chunk, XT_RANGE_OPERATION)[row]) {
	case XT_RANGE_PUSH:
		return keep(&s->pushed, &range);
	case XT_RANGE_POP:
		if (take(&s->pushed, &range, false, &other))
			return put_row(sink, process, &other, "push", &range);
		return 0;
	case XT_RANGE_START:
		if (!take(&s->ended, &range, true, &other))
			return keep(&s->started, &range);
		return put_row(sink, process, &range, "start", &other);
	case XT_RANGE_END:
		if (!take(&s->started, &range, true, &other))
			return keep(&s->ended, &range);
		return put_row(sink, process, &other, "start", &range);
	case XT_RANGE_MARK:
		return put_row(sink, process, &range, "mark", &range);
	default:
		return 0;
	}
}

int sqlite_put_open_ranges(struct sink *sink, const struct process *process)
{
	struct sqlite *s = sink->state;
	int error = 0;

	for (size_t i = 0; i < s->pushed.count && !error; i++)
		error = put_row(sink, process, &s->pushed.rows[i], "push", NULL);
	for (size_t i = 0; i < s->started.count && !error; i++)
		error = put_row(sink, process, &s->started.rows[i], "start", NULL);
	return error;
}
