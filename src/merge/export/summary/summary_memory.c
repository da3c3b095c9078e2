/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory tables: by device, at the peak, at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/export/summary/summary_memory.h"
#include "merge/export/summary/summary_path.h"
#include "merge/export/summary/summary_text.h"
#include "merge/sums/tables.h"

static const struct column memory_columns[] = {
	{"allocations", 12, 120, false}, {"frees", 12, 120, false},  {"allocated", 12, 64, false},
	{"peak", 12, 0, false},		 {"peak at", 12, 76, false}, {"at the end", 12, 0, false},
};

#define MEMORY_COLUMNS (sizeof(memory_columns) / sizeof(memory_columns[0]))

#define CACHE "CachingAllocator" /* in the names of functions of PyTorch's allocators */

static const struct column held_column = {"bytes", 12, 0, false};

/* Writes call paths with their bytes, largest first. Returns 0 or -ENOMEM. */
static int put_held(struct sink *sink, const struct run *run, const struct table *table,
		    const char *title)
{
	size_t shown = rows_to_show(table->count, sink->settings);
	char bytes[TIME_BYTES];
	int error = 0;

	if (table->count) {
		put_top_title(&sink->out, title, shown, table->count);
		put_heads(&sink->out, &held_column, 1, "call path");
	}
	for (size_t i = 0; i < shown && !error; i++) {
		format_bytes(bytes, table->rows[i].value);
		put_figures(&sink->out, &held_column, 1, (const char *const[]){bytes});
		error = put_path_row(&sink->out, &run->paths, table->rows[i].id);
	}
	return error;
}

static bool are_equal(const struct table *a, const struct table *b)
{
	for (size_t i = 0; i < a->count && a->count == b->count; i++)
		if (a->rows[i].id != b->rows[i].id || a->rows[i].value != b->rows[i].value)
			return false;
	return a->count == b->count;
}

/* Whether PyTorch's caching allocator holds memory, which it would use again. */
static bool has_cache(const struct run *run, const struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		for (uint32_t n = table->rows[i].id; n != PATH_ROOT; n = run->paths.nodes[n].parent)
			if (strstr(names_text(&run->paths.names, run->paths.nodes[n].name, NULL),
				   CACHE))
				return true;
	return false;
}

/* One table for both if they are equal. */
static int put_paths(struct sink *sink, const struct run *run)
{
	struct table peak = {0}, left = {0};
	int error = table_paths(&peak, &run->paths, WEIGHT_PEAK_BYTES);

	if (!error)
		error = table_paths(&left, &run->paths, WEIGHT_LEAKED_BYTES);
	if (!error && are_equal(&peak, &left)) {
		error = put_held(sink, run, &peak,
				 "Memory at the peak and at the end, by call path");
	} else if (!error) {
		error = put_held(sink, run, &peak, "Memory at the peak, by call path");
		if (!error)
			error = put_held(sink, run, &left, "Memory at the end, by call path");
	}
	if (!error && has_cache(run, &left))
		put_note(&sink->out, "PyTorch keeps freed memory to use it again. Its cache at "
				     "the end is no leak.");
	table_free(&peak);
	table_free(&left);
	return error;
}

int summary_put_memory(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;

	if (!run->memory_row_count)
		return 0;
	put_top_title(out, "Memory", run->memory_row_count, run->memory_row_count);
	if (run->selection && wanted_has_patterns(&run->settings->wanted))
		put_note(out, "includes all calls in the time window; --filter, --focus and "
			      "--range do not apply");
	if (losses_account(run->accounts, "kinds.lost.memory"))
		put_note(out, "recorded only for a part of the run, because CUPTI could have ended "
			      "the program; what was freed later is not known");
	if (run->stop_count)
		put_note(out, "counts from each start of recording: allocations and frees while "
			      "it was stopped are not known");
	put_heads(out, memory_columns, MEMORY_COLUMNS, "memory");
	for (size_t r = 0; r < run->memory_row_count; r++) {
		const struct memory_row *row = &run->memory[r];
		char allocs[COUNT_BYTES], frees[COUNT_BYTES], bytes[TIME_BYTES], peak[TIME_BYTES],
			time[TIME_BYTES], live[TIME_BYTES];
		size_t length;
		const char *label = names_text(&run->paths.names, row->label, &length);

		format_count(allocs, row->pool.alloc_count);
		format_count(frees, row->pool.free_count);
		format_bytes(bytes, row->pool.alloc_bytes);
		format_bytes(peak, row->pool.peak_bytes);
		format_time(time, row->peak_ns > 0 ? (uint64_t)row->peak_ns : 0);
		format_bytes(live, row->pool.live_bytes);
		put_figures(out, memory_columns, MEMORY_COLUMNS,
			    (const char *const[]){allocs, frees, bytes, peak, time, live});
		put_cell(out, label, length);
		output_text(out, "\n", 1);
	}
	return put_paths(sink, run);
}
