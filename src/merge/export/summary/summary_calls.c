/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of API calls, copies and memsets, and NVTX ranges.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"
#include "merge/base/text.h"
#include "merge/export/summary/summary_calls.h"
#include "merge/export/summary/summary_path.h"
#include "merge/export/summary/summary_text.h"
#include "merge/sums/tables.h"

#define OTHER_FUNCTIONS "[other functions]"
#define ERROR_BYTES	96
#define FAILURE_INDENT	8

static const struct column call_columns[] = {
	{"calls", 12, 0, false}, {"failed", 8, 60, false}, {"total", 12, 0, false},
	{"mean", 12, 70, false}, {"min", 12, 120, false},  {"p99", 12, 120, false},
	{"max", 12, 120, false},
};

static const struct column failure_columns[] = {{"count", 12, 0, false}, {"error", 40, 100, true}};

static const struct column transfer_columns[] = {
	{"time", 12, 0, false},
	{"count", 12, 64, false},
	{"bytes", 12, 0, false},
	{"bandwidth", 14, 76, false},
};

static const struct column range_columns[] = {
	{"time", 12, 0, false},
	{"share", 7, 0, false},
	{"count", 12, 76, false},
	{"opened", 12, 60, false},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

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
	put_figures(out, call_columns, COUNT_OF(call_columns),
		    (const char *const[]){count, failed, total, mean, min, p99, max});
	put_cell(out, name, strlen(name));
	output_text(out, "\n", 1);
}

/* Formats "CUDA_ERROR_OUT_OF_MEMORY (2)". */
static void name_error(char *out, size_t out_bytes, uint64_t code)
{
	const char *name = error_label(code);

	if (name)
		snprintf(out, out_bytes, "%s (%" PRIu64 ")", name, code);
	else
		snprintf(out, out_bytes, "error %" PRIu64, code);
}

/* Writes the process name, or an ellipsis if the rest of the line would not fit. */
static void put_process(struct output *out, const char *process, size_t reserved)
{
	size_t columns = text_columns(process, strlen(process)) + 1;

	if (put_room(out) < columns + PATH_COLUMNS_MIN + reserved)
		process = ELLIPSIS;
	output_format(out, "%s;", process);
}

static int put_failure(struct output *out, const struct run *run, const struct failure *failure)
{
	bool is_narrow = out->columns && out->columns < failure_columns[1].from;
	char count[COUNT_BYTES], text[ERROR_BYTES];
	size_t length;
	const char *api = names_text(&run->paths.names, failure->name, &length);
	int error = 0;

	format_count(count, failure->count);
	name_error(text, sizeof(text), failure->result);
	put_figures(out, failure_columns, COUNT_OF(failure_columns),
		    (const char *const[]){count, text});
	if (is_narrow) {
		put_words(out, text, 0, FAILURE_INDENT, out->columns);
		output_format(out, "\n%*s", FAILURE_INDENT, "");
	}
	if (failure->process != NAME_EMPTY)
		put_process(out, names_text(&run->paths.names, failure->process, NULL), length + 1);
	if (failure->node != PATH_ROOT)
		error = put_path(out, &run->paths, failure->node, text_columns(api, length) + 1);
	else
		output_format(out, FRAME_UNATTRIBUTED);
	output_format(out, ";%s\n", api);
	return error;
}

static int put_failures(struct sink *sink, const struct run *run, const struct calls *calls)
{
	size_t shown = rows_to_show(calls->failure_count, sink->settings);
	struct output *out = &sink->out;
	char count[COUNT_BYTES];
	int error = 0;

	put_top_title(out, "Failed calls by error and call path", shown, calls->failure_count);
	put_heads(out, failure_columns, COUNT_OF(failure_columns),
		  out->columns && out->columns < failure_columns[1].from ? "error, call path"
									 : "call path");
	for (size_t f = 0; f < shown && !error; f++)
		error = put_failure(out, run, &calls->failures[f]);
	if (calls->other_failure_count) {
		format_count(count, calls->other_failure_count);
		output_format(out, "%12s  other failed calls\n", count);
	}
	return error;
}

int summary_put_calls(struct sink *sink, const struct run *run)
{
	const struct calls *calls = run_analysis(run, &analysis_calls);
	size_t shown = rows_to_show(calls->count, sink->settings);

	if (!calls->count)
		return 0;
	put_top_title(&sink->out, "API calls by function", shown, calls->count);
	put_heads(&sink->out, call_columns, COUNT_OF(call_columns), "function");
	for (size_t r = 0; r < shown; r++)
		put_call(&sink->out, run, &calls->rows[r]);
	return calls->failure_count ? put_failures(sink, run, calls) : 0;
}

void summary_put_transfers(struct sink *sink, const struct run *run)
{
	const struct transfers *transfers = &run->transfers;
	size_t shown = rows_to_show(transfers->count, sink->settings);
	struct output *out = &sink->out;

	if (!transfers->count)
		return;
	put_top_title(out, "Copies and memsets", shown, transfers->count);
	put_heads(out, transfer_columns, COUNT_OF(transfer_columns), "direction");
	for (size_t r = 0; r < shown; r++) {
		const struct transfer_row *row = &transfers->rows[r];
		char time[TIME_BYTES], count[COUNT_BYTES], bytes[TIME_BYTES], bandwidth[32] = "-";
		size_t length;
		const char *name = names_text(&run->paths.names, row->name, &length);

		format_time(time, row->sum.gpu_ns);
		format_count(count, row->sum.count);
		format_bytes(bytes, row->sum.bytes);
		if (row->sum.gpu_ns)
			snprintf(bandwidth, sizeof(bandwidth), "%.3f GB/s",
				 (double)row->sum.bytes / (double)row->sum.gpu_ns);
		put_figures(out, transfer_columns, COUNT_OF(transfer_columns),
			    (const char *const[]){time, count, bytes, bandwidth});
		put_cell(out, name, length);
		output_text(out, "\n", 1);
	}
}

int summary_put_ranges(struct sink *sink, const struct run *run)
{
	struct table table;
	size_t shown;
	int error = table_ranges(&table, run);

	if (error || !table.count)
		goto out;
	shown = rows_to_show(table.count, sink->settings);
	put_top_title(&sink->out, "GPU time by NVTX range, including nested ranges", shown,
		      table.count);
	put_heads(&sink->out, range_columns, COUNT_OF(range_columns), "range");
	for (size_t r = 0; r < shown && !error; r++) {
		const struct table_row *row = &table.rows[r];
		char time[TIME_BYTES], share[SHARE_BYTES], work[COUNT_BYTES], opened[COUNT_BYTES];

		format_time(time, row->value);
		format_count(work, row->count);
		format_count(opened, run->range_sums[row->id].opened_count);
		format_share(share, row->value, run->gpu_ns);
		put_figures(&sink->out, range_columns, COUNT_OF(range_columns),
			    (const char *const[]){time, share, work, opened});
		error = put_path_row(&sink->out, &run->ranges, row->id);
	}
out:
	table_free(&table);
	return error;
}
