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
#include "merge/findings/conclusions.h"
#include "merge/sums/reading.h"

/* Returns the row of the process of a log, or NULL if out of memory. */
static struct rank_row *row_of(struct ranks *ranks, const struct process *process)
{
	struct rank_row *row;

	for (size_t r = 0; r < ranks->count; r++)
		if (ranks->rows[r].first == process->log->first)
			return &ranks->rows[r];
	xt_grow(&ranks->rows, &ranks->capacity, ranks->count + 1, sizeof(*ranks->rows));
	row = &ranks->rows[ranks->count];
	*row = (struct rank_row){.first = process->log->first, .label = xt_strdup(process->label)};
	ranks->count += row->label != NULL;
	return row->label ? row : NULL;
}

static void add_gpu(struct rank_row *row, const struct model *model, uint32_t device)
{
	struct rank_gpu *gpu = &row->gpus[row->gpu_count];
	char key[40];

	for (size_t g = 0; g < row->gpu_count; g++)
		if (row->gpus[g].device == device)
			return;
	if (row->gpu_count == RANK_GPUS_MAX)
		return;
	gpu->device = device;
	snprintf(key, sizeof(key), "gpu.%u.name", device);
	gpu->name = xt_strdup(model_meta(model, key));
	snprintf(key, sizeof(key), "gpu.%u.uuid", device);
	gpu->uuid = xt_strdup(model_meta(model, key));
	row->gpu_count++;
}

static void add_device(struct rank_row *row, const struct reading *reading,
		       const struct device_stats *device)
{
	int64_t first_ns = (int64_t)(device->first_ns - (uint64_t)reading->process.origin_ns);
	int64_t last_ns = (int64_t)(device->last_ns - (uint64_t)reading->process.origin_ns);

	if (!row->span_ns || first_ns < row->first_ns)
		row->first_ns = first_ns;
	if (!row->span_ns || last_ns > row->last_ns)
		row->last_ns = last_ns;
	saturating_add(&row->span_ns, device_span_ns(device));
	saturating_add(&row->busy_ns, device->work_union_ns);
	for (int class = 0; class < IDLE_CLASSES; class ++)
		saturating_add(&row->idle_ns, device->idle_ns[class]);
	add_gpu(row, reading->model, device->device);
}

void ranks_add(struct reading *reading)
{
	const struct callsites *callsites = &reading->callsites;
	const struct aggregate *totals = &reading->aggregate;
	struct rank_row *row = row_of(&reading->run->found->ranks, &reading->process);

	for (uint32_t t = 0; t < totals->count; t++)
		saturating_add(&row->gpu_ns, totals->entries[t].weights[WEIGHT_GPU_TIME]);
	for (size_t d = 0; d < callsites->device_count; d++)
		add_device(row, reading, &callsites->devices[d]);
	saturating_add(&row->collective_ns, reading->collectives.alone_ns);
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
	if (ranks->count)
		qsort(ranks->rows, ranks->count, sizeof(*ranks->rows), compare_rows);
}

const struct rank_row *ranks_fastest(const struct ranks *ranks)
{
	const struct rank_row *fastest = NULL;

	for (size_t r = 0; r < ranks->count; r++)
		if (ranks->rows[r].gpu_count)
			fastest = &ranks->rows[r];
	return fastest;
}

const struct rank_row *ranks_slowest(const struct ranks *ranks)
{
	const struct rank_row *fastest = ranks_fastest(ranks);

	return fastest && ranks->rows[0].own_ns > fastest->own_ns ? &ranks->rows[0] : NULL;
}

void ranks_free(struct ranks *ranks)
{
	for (size_t r = 0; r < ranks->count; r++) {
		struct rank_row *row = &ranks->rows[r];

		for (size_t g = 0; g < row->gpu_count; g++) {
			free(row->gpus[g].name);
			free(row->gpus[g].uuid);
		}
		free(row->label);
	}
	free(ranks->rows);
	*ranks = (struct ranks){0};
}
