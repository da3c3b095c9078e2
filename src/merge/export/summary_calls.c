/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the summary about API calls, copies and sets, and NVTX ranges.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"
#include "merge/export/summary.h"
#include "merge/sums/tables.h"

#define OTHER_FUNCTIONS "[other functions]"

static void put_call(struct output *out, const struct run *run, const struct call_row *row)
{
	char count[COUNT_BYTES], failed[COUNT_BYTES], total[TIME_BYTES], mean[TIME_BYTES],
		min[TIME_BYTES], max[TIME_BYTES], p99[TIME_BYTES];
	const char *name = row->name == NAME_EMPTY ? OTHER_FUNCTIONS
						   : names_text(&run->paths.names, row->name, NULL);

	format_count(count, row->count);
	format_count(failed, row->failed_count);
	format_time(total, row->total_ns);
	format_time(mean, row->total_ns / row->count);
	format_time(min, row->min_ns);
	format_time(max, row->max_ns);
	format_time(p99, calls_p99_ns(row));
	output_format(out, "%12s  %8s  %12s  %12s  ", count, failed, total, mean);
	if (!put_is_narrow(out))
		output_format(out, "%12s  %12s  %12s  ", min, p99, max);
	put_elided(out, name, strlen(name), put_room(out));
	output_text(out, "\n", 1);
}

/* "CUDA_ERROR_OUT_OF_MEMORY (2)" */
static void put_error(struct output *out, uint64_t code)
{
	const char *name = error_label(code);
	char text[96];

	if (name)
		snprintf(text, sizeof(text), "%s (%" PRIu64 ")", name, code);
	else
		snprintf(text, sizeof(text), "error %" PRIu64, code);
	output_format(out, "%-40s", text);
}

static int put_failures(struct sink *sink, const struct run *run, const struct calls *calls)
{
	size_t shown = put_limit(calls->failure_count, sink->settings);
	struct output *out = &sink->out;
	char count[COUNT_BYTES];
	int error = 0;

	put_title(out, "Failed calls by error and call path", shown, calls->failure_count);
	output_format(out, "%12s  %-40s  %s\n", "count", "error", "call path");
	for (size_t f = 0; f < shown && !error; f++) {
		const struct failure *failure = &calls->failures[f];

		format_count(count, failure->count);
		output_format(out, "%12s  ", count);
		put_error(out, failure->result);
		output_text(out, "  ", 2);
		if (failure->process != NAME_EMPTY)
			output_format(out, "%s;",
				      names_text(&run->paths.names, failure->process, NULL));
		if (failure->node != PATH_ROOT)
			error = put_path(out, &run->paths, failure->node);
		else
			output_format(out, FRAME_UNATTRIBUTED);
		output_format(out, ";%s\n", names_text(&run->paths.names, failure->name, NULL));
	}
	if (calls->other_failure_count) {
		format_count(count, calls->other_failure_count);
		output_format(out, "%12s  others\n", count);
	}
	return error;
}

int summary_put_calls(struct sink *sink, const struct run *run)
{
	struct summary *summary = sink->state;
	struct calls *calls = &summary->calls;
	size_t shown = put_limit(calls->count, sink->settings);

	if (!calls->count)
		return 0;
	calls_sort(calls);
	put_title(&sink->out, "API calls by function", shown, calls->count);
	output_format(&sink->out, "%12s  %8s  %12s  %12s  ", "calls", "failed", "total", "mean");
	if (!put_is_narrow(&sink->out))
		output_format(&sink->out, "%12s  %12s  %12s  ", "min", "p99", "max");
	output_format(&sink->out, "function\n");
	for (size_t r = 0; r < shown; r++)
		put_call(&sink->out, run, &calls->rows[r]);
	return calls->failure_count ? put_failures(sink, run, calls) : 0;
}

void summary_put_transfers(struct sink *sink, const struct run *run)
{
	const struct transfers *transfers = &run->transfers;
	size_t shown = put_limit(transfers->count, sink->settings);
	struct output *out = &sink->out;

	if (!transfers->count)
		return;
	put_title(out, "Copies and sets", shown, transfers->count);
	output_format(out, "%12s  %12s  %12s  %14s  %s\n", "time", "count", "bytes", "bandwidth",
		      "direction");
	for (size_t r = 0; r < shown; r++) {
		const struct transfer_row *row = &transfers->rows[r];
		char time[TIME_BYTES], count[COUNT_BYTES], bytes[TIME_BYTES], bandwidth[32] = "-";

		format_time(time, row->sum.gpu_ns);
		format_count(count, row->sum.count);
		format_bytes(bytes, row->sum.bytes);
		if (row->sum.gpu_ns)
			snprintf(bandwidth, sizeof(bandwidth), "%.3f GB/s",
				 (double)row->sum.bytes / (double)row->sum.gpu_ns);
		output_format(out, "%12s  %12s  %12s  %14s  %s\n", time, count, bytes, bandwidth,
			      names_text(&run->paths.names, row->name, NULL));
	}
}

int summary_put_ranges(struct sink *sink, const struct run *run)
{
	struct table table;
	size_t shown;
	int error = table_ranges(&table, run);

	if (error || !table.count)
		goto out;
	shown = put_limit(table.count, sink->settings);
	put_title(&sink->out, "GPU time by NVTX range, with all that is in it", shown, table.count);
	output_format(&sink->out, "%12s  %7s  %12s  %12s  %s\n", "time", "share", "count", "opened",
		      "range");
	for (size_t r = 0; r < shown && !error; r++) {
		const struct table_row *row = &table.rows[r];
		char time[TIME_BYTES], work[COUNT_BYTES], opened[COUNT_BYTES];

		format_time(time, row->value);
		format_count(work, row->count);
		format_count(opened, run->range_sums[row->id].opened_count);
		output_format(&sink->out, "%12s  %5.1f %%  %12s  %12s  ", time,
			      run->gpu_ns ? 100.0 * (double)row->value / (double)run->gpu_ns : 0.0,
			      work, opened);
		error = put_path(&sink->out, &run->ranges, row->id);
		output_text(&sink->out, "\n", 1);
	}
out:
	table_free(&table);
	return error;
}
