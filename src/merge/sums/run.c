/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/base/labels.h"
#include "merge/read/inputs.h"
#include "merge/sums/exporter.h"

uint32_t run_listed_weights(const struct run *run)
{
	uint32_t weights = (1u << WEIGHTS) - 1;

	if (run->inputs->all_count == run->inputs->count)
		weights &= ~CPU_WEIGHTS;
	if (!run->sums->events.work.untimed_count)
		weights &= ~GRAPH_WEIGHTS;
	return run->needs.ranks ? weights : weights & ~RANK_WEIGHTS;
}

const void *run_analysis(const struct run *run, const struct exporter *analysis)
{
	for (size_t a = 0; a < run->analyses.count; a++)
		if (run->analyses.list[a].exporter == analysis)
			return run->analyses.list[a].state;
	return NULL;
}

#define RECORDED_MIN_NS 1000000

void handoffs_add(struct handoffs *handoffs, const struct model *model)
{
	const struct cupti_handoffs *of_log = &model->cupti_handoffs;

	if (!of_log->count)
		return;
	if (!handoffs->count)
		snprintf(handoffs->first_tool, sizeof(handoffs->first_tool), "%s",
			 names_text(&model->names, of_log->who, NULL));
	handoffs->count += of_log->count;
	handoffs->total_ns += of_log->total_ns;
	if (of_log->since_ns && model->times.last_clock_ns > of_log->since_ns)
		handoffs->total_ns += model->times.last_clock_ns - of_log->since_ns;
}

/* The process may have run for long before xtrace attach loaded the tracer. */
static void add_attach(struct recording *recording, const struct model *model,
		       const struct xt_log_header *header)
{
	uint64_t attached_ns = strtoull(model_meta(model, "process.attached"), NULL, 10);
	uint64_t start_ns = model_process_start_ns(model, header);

	if (!attached_ns)
		return;
	recording->attached_count++;
	if (attached_ns > start_ns && attached_ns - start_ns > recording->attached_ns)
		recording->attached_ns = attached_ns - start_ns;
}

/* Only with pauses. An armed process is on for a moment until it is switched off. */
static void add_recorded_time(struct recording *recording, const struct model *model)
{
	uint64_t paused_ns = pauses_total_ns(&model->pauses, model->times.last_clock_ns);
	uint64_t from_ns = larger(model->times.from_ns, model->times.start_ns);

	recording->paused_ns += paused_ns;
	if (model->pauses.count &&
	    model->times.last_clock_ns > from_ns + paused_ns + RECORDED_MIN_NS)
		recording->recorded_ns += model->times.last_clock_ns - from_ns - paused_ns;
}

void recording_add(struct recording *recording, const struct model *model,
		   const struct xt_log_header *header)
{
	recording->pause_count += model->pauses.count;
	recording->cut_count += model_is_cut(model);
	recording->stop_count += model->stops.count;
	add_recorded_time(recording, model);
	add_attach(recording, model, header);
}

#define LABEL_BYTES    96
#define DEVICES_LABELS 64 /* larger device numbers share a label */

static void add_transfer(struct transfers *transfers, struct names *names, const char *label,
			 bool is_memset, const struct transfer_sum *sum)
{
	uint32_t name = names_intern(names, label, strlen(label));
	size_t *place = by_id(transfers->places, name);
	struct transfer_row *row;

	if (!*place) {
		list_append(*transfers, (struct transfer_row){name, is_memset, {0}});
		*place = transfers->count;
	}
	row = &transfers->list[*place - 1];
	row->sum.count += sum->count;
	row->sum.bytes += sum->bytes;
	row->sum.gpu_ns += sum->gpu_ns;
}

void transfers_add_copies(struct transfers *transfers, struct names *names,
			  const struct copy_shape *shape, const struct transfer_sum *sum)
{
	bool is_pageable =
		shape->source == MEMORY_PAGEABLE || shape->destination == MEMORY_PAGEABLE;
	char label[LABEL_BYTES], devices[LABEL_BYTES / 2] = "";

	if (shape->from_device && shape->from_device <= DEVICES_LABELS && shape->to_device &&
	    shape->to_device <= DEVICES_LABELS)
		snprintf(devices, sizeof(devices), " GPU%u to GPU%u", shape->from_device - 1,
			 shape->to_device - 1);
	snprintf(label, sizeof(label), "copy %s%s%s", copy_kind_label(shape->kind), devices,
		 is_pageable ? ", pageable" : "");
	add_transfer(transfers, names, label, false, sum);
}

void transfers_add_memsets(struct transfers *transfers, struct names *names, uint32_t memory,
			   const struct transfer_sum *sum)
{
	char label[LABEL_BYTES];

	snprintf(label, sizeof(label), "memset %s", memory_kind_label(memory));
	add_transfer(transfers, names, label, true, sum);
}

void transfers_free(struct transfers *transfers)
{
	free_all(transfers->list, transfers->places.list);
	*transfers = (struct transfers){0};
}

COMPARE_BY(compare_transfers, struct transfer_row, DOWN(sum.gpu_ns) UP(name))

void transfers_sort(struct transfers *transfers)
{
	SORT(transfers->list, transfers->count, compare_transfers);
}
