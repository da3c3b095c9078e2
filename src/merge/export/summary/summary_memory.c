/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory tables: by device, at the peak, never freed.
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
	{"peak", 12, 0, false},		 {"peak at", 12, 76, false}, {"never freed", 12, 0, false},
};

#define MEMORY_COLUMNS (sizeof(memory_columns) / sizeof(memory_columns[0]))

static const struct column held_column = {"bytes", 12, 0, false};

/* Writes call paths by the bytes of a weight, largest first. Returns 0 or -ENOMEM. */
static int put_held(struct sink *sink, const struct run *run, enum weight weight, const char *title)
{
	struct table table;
	size_t shown;
	char bytes[TIME_BYTES];
	int error = table_paths(&table, &run->paths, weight);

	if (error)
		return error;
	shown = rows_to_show(table.count, sink->settings);
	if (table.count) {
		put_top_title(&sink->out, title, shown, table.count);
		put_heads(&sink->out, &held_column, 1, "call path");
	}
	for (size_t i = 0; i < shown && !error; i++) {
		format_bytes(bytes, table.rows[i].value);
		put_figures(&sink->out, &held_column, 1, (const char *const[]){bytes});
		error = put_path_row(&sink->out, &run->paths, table.rows[i].id);
	}
	table_free(&table);
	return error;
}

int summary_put_memory(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;
	int error;

	if (!run->memory_row_count)
		return 0;
	put_top_title(out, "Memory", run->memory_row_count, run->memory_row_count);
	if (run->selection && wanted_has_patterns(&run->settings->wanted))
		put_note(out, "includes all calls in the time window; --filter, --focus and "
			      "--range do not apply");
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
		put_elided(out, label, length, put_room(out));
		output_text(out, "\n", 1);
	}
	error = put_held(sink, run, WEIGHT_PEAK_BYTES, "Peak memory by call path");
	if (!error)
		error = put_held(sink, run, WEIGHT_LEAKED_BYTES, "Memory never freed by call path");
	return error;
}
