/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several logs of one process share a row.
 */
#include "merge/findings/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/findings/headline.h"
#include "merge/sums/reading.h"
#include "base/json.h"
#include "merge/tables/table.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"

#define UUID_SHOWN 8 /* digits that usually tell GPUs apart */

/* Returns the row of the process of a log. */
static struct rank_row *row_of(struct ranks *ranks, const struct process *process)
{
	struct rank_row *row;

	for (size_t r = 0; r < ranks->count; r++)
		if (ranks->rows[r].first == process->log->first)
			return &ranks->rows[r];
	row = xt_new(ranks->rows, ranks->count, ranks->capacity);
	*row = (struct rank_row){.first = process->log->first, .label = process->label};
	return row;
}

static void add_gpu(struct rank_row *row, const struct model *model, uint32_t device)
{
	for (size_t g = 0; g < row->gpu_count; g++)
		if (row->gpus[g].device == device)
			return;
	if (row->gpu_count < RANK_GPUS_MAX)
		row->gpus[row->gpu_count++] =
			(struct rank_gpu){device, xt_strdup(model_gpu(model, device, "name")),
					  xt_strdup(model_gpu(model, device, "uuid"))};
}

static void add_device(struct rank_row *row, const struct reading *reading,
		       const struct device_stats *device)
{
	int64_t first_ns = process_time_ns(&reading->process, device->first_ns);
	int64_t last_ns = process_time_ns(&reading->process, device->last_ns);

	if (!row->span_ns || first_ns < row->first_ns)
		row->first_ns = first_ns;
	if (!row->span_ns || last_ns > row->last_ns)
		row->last_ns = last_ns;
	saturating_add(&row->span_ns, device_span_ns(device));
	saturating_add(&row->busy_ns, device->work_union.ns);
	for (int class = 0; class < IDLE_CLASSES; class ++)
		saturating_add(&row->idle_ns, device->idle[class].ns);
	add_gpu(row, reading->model, device->device);
}

void ranks_add(struct reading *reading)
{
	const struct callsites *callsites = &reading->sums.callsites;
	const struct aggregate *totals = &reading->aggregate;
	struct rank_row *row = row_of(&reading->run->found->ranks, &reading->process);

	for (uint32_t t = 0; t < totals->count; t++)
		saturating_add(&row->gpu_ns, totals->entries[t].weights[WEIGHT_GPU_TIME]);
	for (size_t d = 0; d < callsites->device_count; d++)
		add_device(row, reading, &callsites->devices[d]);
	saturating_add(&row->collective_ns, reading->gaps.collectives.alone_ns);
}

/* Longest first. Processes with equal times keep the order of their logs. */
COMPARE_BY(compare_rows, struct rank_row, DOWN(own_ns) UP(first))

void ranks_finish(struct run *run)
{
	struct ranks *ranks = &run->found->ranks;

	for (size_t r = 0; r < ranks->count; r++) {
		struct rank_row *row = &ranks->rows[r];

		if (row->gpu_count && row->span_ns > row->collective_ns)
			row->own_ns = (row->span_ns - row->collective_ns) / row->gpu_count;
	}
	SORT(ranks->rows, ranks->count, compare_rows);
}

const struct rank_row *ranks_fastest(const struct ranks *ranks)
{
	const struct rank_row *fastest = NULL;

	for (size_t r = 0; r < ranks->count; r++)
		if (ranks->rows[r].gpu_count)
			fastest = &ranks->rows[r];
	return fastest;
}

const struct rank_row *ranks_slowest_of(const struct run *run)
{
	const struct ranks *ranks = &run->found->ranks;
	const struct rank_row *fastest = ranks_fastest(ranks);

	if (run->compared->report.counts.compared_count || run->found->headline.programs.count > 1)
		return NULL;
	return fastest && ranks->rows[0].own_ns > fastest->own_ns ? &ranks->rows[0] : NULL;
}

void ranks_free(struct ranks *ranks)
{
	for (size_t r = 0; r < ranks->count; r++) {
		struct rank_row *row = &ranks->rows[r];

		for (size_t g = 0; g < row->gpu_count; g++)
			free_all(row->gpus[g].name, row->gpus[g].uuid);
	}
	free(ranks->rows);
	*ranks = (struct ranks){0};
}

static const struct column_def columns[] = {
	COLUMN("label", TEXT, FROM(rank_row, label), "label of the process"),
	JOB_COLUMNS,
	COLUMN("host", TEXT, OTHER, "host"),
	COLUMN("pid", CODE, OTHER, "process id"),
	COLUMN("gpu_time_ns", NS, FROM(rank_row, gpu_ns), "time of kernels, copies and memsets",
	       HEAD("GPU time", 12)),
	COLUMN("gpu_busy_ns", NS, FROM(rank_row, busy_ns), "time with any work",
	       WIDE("busy", 12, 80)),
	COLUMN("gpu_idle_ns", NS, FROM(rank_row, idle_ns), "time of all gaps",
	       WIDE("idle", 12, 80)),
	COLUMN("span_ns", NS, FROM(rank_row, span_ns), "from the first to the last work"),
	COLUMN("collective_alone_ns", NS, FROM(rank_row, collective_ns),
	       "time in which only collectives ran: mostly waits for other ranks"),
	COLUMN("own_ns", NS, FROM(rank_row, own_ns),
	       "(`span_ns` - `collective_alone_ns`) / number of GPUs", HEAD("own time", 12)),
	COLUMN("first_start_ns", MOMENT, OTHER, "start of the first work", OPTIONAL),
	COLUMN("last_end_ns", MOMENT, OTHER, "end of the last work", OPTIONAL),
	COLUMN("text", TEXT, OTHER, "process, host and GPUs", LAST("process"), TEXT_ONLY),
};

static void open_rows(struct table_rows *rows)
{
	const struct ranks *ranks = &rows->run->found->ranks;

	table_records(rows, ranks->rows, ranks->count);
}

/* "rank 3 (train.py) on node1, GPU0 1a2b3c4d". */
static char *describe_row(const struct rank_row *row, const char *host)
{
	char *text, *on = xt_asprintf(" on %s", host);
	size_t length;
	FILE *stream = xt_open_memstream(&text, &length);

	/* The label may have the host already. */
	fprintf(stream, "%s%s", row->label, host[0] && !strstr(row->label, on) ? on : "");
	for (size_t g = 0; g < row->gpu_count; g++)
		fprintf(stream, ", GPU%u%s%.*s", row->gpus[g].device,
			row->gpus[g].uuid[0] ? " " : "", UUID_SHOWN, row->gpus[g].uuid);
	xt_close_memstream(stream);
	free(on);
	return text;
}

static void ranks_put_row(struct table_rows *rows, struct cells *cells)
{
	const struct rank_row *row = rows->record;
	const struct input *log = &rows->run->inputs->logs[row->first];

	cells_put_job(cells, log);
	cells_put(cells, cell_text(log->host));
	cells_put(cells, cell_number(log->header.pid));
	cells_put(cells, row->gpu_count ? cell_moment(row->first_ns) : CELL_ABSENT);
	cells_put(cells, row->gpu_count ? cell_moment(row->last_ns) : CELL_ABSENT);
	cells_put(cells, cell_owned(rows, describe_row(row, log->host)));
}

static size_t own_time_note(const struct run *run, const char *notes[NOTES_MAX])
{
	notes[0] = run->sums->collectives.count
			   ? "Own time is the time from the first to the last GPU work without "
			     "the time in which only collectives ran."
			   : "Own time is the time from the first to the last GPU work.";
	return 1;
}

static void put_slowest(struct json *json, const struct run *run)
{
	const struct rank_row *slowest = ranks_slowest_of(run);

	if (slowest)
		json_string(json, "slowest", slowest->label);
}

static void put_gpus(struct json *json, const struct table_rows *rows)
{
	const struct rank_row *row = rows->record;

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

const struct table_def table_by_process = {
	.name = "by_process",
	.title = "GPU time by process",
	.what = "Sums of each process, even if it has several logs, slowest first.",
	HAS_COLUMNS(columns),
	.shows = "gpu_time_ns gpu_busy_ns gpu_idle_ns own_ns text",
	.open = open_rows,
	.row = ranks_put_row,
	.json.is_complete = true,
	.notes = own_time_note,
	.json.head = put_slowest,
	.json.more = put_gpus,
};
