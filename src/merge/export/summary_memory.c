/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the summary about memory: by device, held at the peak, never freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/export/summary.h"
#include "merge/sums/tables.h"

/* Call paths by the bytes of a weight, the largest first. 0 or -ENOMEM. */
static int put_held(struct sink *sink, const struct run *run, enum weight weight, const char *title)
{
	struct table table;
	size_t shown;
	char bytes[TIME_BYTES];
	int error = table_paths(&table, &run->paths, weight);

	if (error)
		return error;
	shown = put_limit(table.count, sink->settings);
	if (table.count) {
		put_title(&sink->out, title, shown, table.count);
		output_format(&sink->out, "%12s  %s\n", "bytes", "call path");
	}
	for (size_t i = 0; i < shown && !error; i++) {
		format_bytes(bytes, table.rows[i].value);
		output_format(&sink->out, "%12s  ", bytes);
		error = put_path(&sink->out, &run->paths, table.rows[i].id);
		output_text(&sink->out, "\n", 1);
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
	put_title(out, "Memory", run->memory_row_count, run->memory_row_count);
	if (run->selection && wanted_has_patterns(&run->settings->wanted))
		output_format(out, "  of all calls in the window of time: --filter, --focus and "
				   "--range do not hold for this table\n");
	if (!put_is_narrow(out))
		output_format(out, "%12s  %12s  ", "allocations", "frees");
	output_format(out, "%12s  %12s  %12s  %12s  %s\n", "allocated", "peak", "peak at",
		      "never freed", "of");
	for (size_t r = 0; r < run->memory_row_count; r++) {
		const struct memory_row *row = &run->memory[r];
		char allocs[COUNT_BYTES], frees[COUNT_BYTES], bytes[TIME_BYTES], peak[TIME_BYTES],
			time[TIME_BYTES], live[TIME_BYTES];

		format_count(allocs, row->pool.alloc_count);
		format_count(frees, row->pool.free_count);
		format_bytes(bytes, row->pool.alloc_bytes);
		format_bytes(peak, row->pool.peak_bytes);
		format_time(time, row->peak_ns > 0 ? (uint64_t)row->peak_ns : 0);
		format_bytes(live, row->pool.live_bytes);
		if (!put_is_narrow(out))
			output_format(out, "%12s  %12s  ", allocs, frees);
		output_format(out, "%12s  %12s  %12s  %12s  %s\n", bytes, peak, time, live,
			      names_text(&run->paths.names, row->label, NULL));
	}
	error = put_held(sink, run, WEIGHT_PEAK_BYTES, "Memory held at the peak");
	if (!error)
		error = put_held(sink, run, WEIGHT_LEAKED_BYTES, "Memory never freed");
	return error;
}
