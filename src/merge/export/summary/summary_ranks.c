/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/number_format.h"
#include "merge/base/text.h"
#include "merge/export/summary/summary_text.h"
#include "merge/findings/conclusions.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"

#define UUID_SHOWN 8 /* digits that usually tell GPUs apart */

static const struct column columns[] = {
	{"GPU time", 12, 0, false},
	{"busy", 12, 80, false},
	{"idle", 12, 80, false},
	{"own time", 12, 0, false},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* "rank 3 (train.py) on node1, GPU0 1a2b3c4d". The caller frees it. NULL if out of memory. */
static char *describe_row(const struct run *run, const struct rank_row *row)
{
	const struct input *log = &run->inputs->logs[row->first];
	char *text = NULL, *longer, *clean, host[INPUT_HOST_BYTES + sizeof(" on ")];

	/* The label may have the host already. */
	snprintf(host, sizeof(host), " on %s", log->host);
	if (asprintf(&text, "%s%s", row->label,
		     log->host[0] && !strstr(row->label, host) ? host : "") < 0)
		return NULL;
	for (size_t g = 0; g < row->gpu_count && text; g++) {
		const struct rank_gpu *gpu = &row->gpus[g];

		if (asprintf(&longer, "%s, GPU%u%s%.*s", text, gpu->device, gpu->uuid[0] ? " " : "",
			     UUID_SHOWN, gpu->uuid) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	clean = text ? text_clean_copy(text) : NULL;
	free(text);
	return clean;
}

static int put_row(struct output *out, const struct run *run, const struct rank_row *row)
{
	const uint64_t times_ns[COLUMNS] = {row->gpu_ns, row->busy_ns, row->idle_ns, row->own_ns};
	char times[COLUMNS][TIME_BYTES];
	const char *figures[COLUMNS];
	char *text = describe_row(run, row);

	if (!text)
		return -ENOMEM;
	for (size_t c = 0; c < COLUMNS; c++) {
		format_time(times[c], times_ns[c]);
		figures[c] = times[c];
	}
	put_figures(out, columns, COLUMNS, figures);
	put_cell(out, text, strlen(text));
	output_text(out, "\n", 1);
	free(text);
	return 0;
}

const struct rank_row *summary_slowest(const struct run *run)
{
	bool is_incomparable =
		run->compared->report.compared_count || run->found->headline.programs.count > 1;

	return is_incomparable ? NULL : ranks_slowest(&run->found->ranks);
}

/* Explains the last column. */
static int put_own_time(struct output *out, const struct run *run)
{
	const struct rank_row *slowest = summary_slowest(run);
	char time[TIME_BYTES], *text, *clean;

	format_time(time,
		    slowest ? slowest->own_ns - ranks_fastest(&run->found->ranks)->own_ns : 0);
	if (asprintf(&text, "%s%s%s%s%sOwn time is the time from the first to the last GPU work%s.",
		     slowest ? "Slowest: " : "", slowest ? slowest->label : "",
		     slowest ? ", with " : "", slowest ? time : "",
		     slowest ? " more own time than the fastest. " : "",
		     run->sums->collectives.count
			     ? " without the time in which only collectives ran"
			     : "") < 0)
		return -ENOMEM;
	clean = text_clean_copy(text);
	if (clean)
		put_note(out, clean);
	free(text);
	free(clean);
	return clean ? 0 : -ENOMEM;
}

int summary_put_ranks(struct sink *sink, const struct run *run)
{
	const struct ranks *ranks = &run->found->ranks;
	size_t shown = rows_to_show(ranks->count, sink->settings);
	int error = 0;

	if (ranks->count < 2)
		return 0;
	put_top_title(&sink->out, "GPU time by process", shown, ranks->count);
	put_heads(&sink->out, columns, COLUMNS, "process");
	for (size_t r = 0; r < shown && !error; r++)
		error = put_row(&sink->out, run, &ranks->rows[r]);
	return error ? error : put_own_time(&sink->out, run);
}

void put_rank_numbers_json(struct json *json, const struct input *log)
{
	if (log->rank != RANK_UNKNOWN)
		json_u64(json, "rank", log->rank);
	if (log->local_rank != RANK_UNKNOWN)
		json_u64(json, "local_rank", log->local_rank);
	if (log->world_size != RANK_UNKNOWN)
		json_u64(json, "world_size", log->world_size);
	if (log->run[0])
		json_string(json, "run_id", log->run);
	if (log->batch_job[0])
		json_string(json, "batch_job_id", log->batch_job);
}

static void put_gpus(struct json *json, const struct rank_row *row)
{
	json_begin_array(json, "gpus");
	for (size_t g = 0; g < row->gpu_count; g++) {
		json_begin_object(json, NULL);
		json_u64(json, "device", row->gpus[g].device);
		json_string(json, "name", row->gpus[g].name);
		json_string(json, "uuid", row->gpus[g].uuid);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_row_json(struct json *json, const struct run *run, const struct rank_row *row)
{
	const struct input *log = &run->inputs->logs[row->first];

	json_begin_object(json, NULL);
	json_string(json, "label", row->label);
	put_rank_numbers_json(json, log);
	json_string(json, "host", log->host);
	json_u64(json, "pid", log->header.pid);
	put_gpus(json, row);
	json_u64(json, "gpu_time_ns", row->gpu_ns);
	json_u64(json, "gpu_busy_ns", row->busy_ns);
	json_u64(json, "gpu_idle_ns", row->idle_ns);
	json_u64(json, "span_ns", row->span_ns);
	json_u64(json, "collective_alone_ns", row->collective_ns);
	json_u64(json, "own_ns", row->own_ns);
	if (row->gpu_count) {
		json_i64(json, "first_start_ns", row->first_ns);
		json_i64(json, "last_end_ns", row->last_ns);
	}
	json_end_object(json);
}

void put_ranks_json(struct json *json, const struct run *run)
{
	const struct ranks *ranks = &run->found->ranks;
	const struct rank_row *slowest = summary_slowest(run);

	if (ranks->count < 2)
		return;
	json_begin_object(json, "by_process");
	json_u64(json, "row_count", ranks->count);
	if (slowest)
		json_string(json, "slowest", slowest->label);
	json_begin_array(json, "rows");
	for (size_t r = 0; r < ranks->count; r++)
		put_row_json(json, run, &ranks->rows[r]);
	json_end_array(json);
	json_end_object(json);
}
