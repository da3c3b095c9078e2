/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/processes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/base/pack.h"
#include "merge/sums/build_tree.h"

static int begin(struct sink *sink)
{
	sink->state = xt_calloc(1, sizeof(struct processes));
	return 0;
}

static void add_process(struct sink *sink, const struct process *process)
{
	struct processes *s = sink->state;
	struct process_sums *sums;
	char title[PROCESS_TITLE_BYTES];

	if (process->is_continued)
		return;
	xt_grow(&s->list, &s->capacity, s->count + 1, sizeof(*s->list));
	model_process_title(process->model, title);
	sums = &s->list[s->count++];
	*sums = (struct process_sums){
		.label = xt_strdup(process->label),
		.name = xt_strdup(model_process_name(process->model)),
		.title = xt_strdup(title),
		.command = xt_strdup(model_meta(process->model, "process.cmdline")),
		.log = process->log,
		.origin_ns = process->origin_ns,
	};
}

/* Returns the sums of a device of the current process. */
static struct device_sums *sums_of_device(struct processes *s, const struct model *model,
					  uint32_t device)
{
	struct process_sums *process = &s->list[s->count - 1];
	struct device_sums *sums;
	char key[32];

	for (size_t d = 0; d < process->device_count; d++)
		if (process->devices[d].device == device)
			return &process->devices[d];
	xt_grow(&process->devices, &process->device_capacity, process->device_count + 1,
		sizeof(*process->devices));
	sums = &process->devices[process->device_count];
	*sums = (struct device_sums){.device = device, .start_ns = UINT64_MAX};
	snprintf(key, sizeof(key), "gpu.%u.name", device);
	sums->name = xt_strdup(model_meta(model, key));
	snprintf(key, sizeof(key), "gpu.%u.uuid", device);
	sums->uuid = xt_strdup(model_meta(model, key));
	process->device_count++;
	return sums;
}

static struct device_sums *sums_of(struct processes *s, const struct model *model, uint32_t stream)
{
	const struct stream *row = &model->streams.rows[stream < model->streams.count ? stream : 0];

	return sums_of_device(s, model, row->defined ? row->device : ROOT_UNKNOWN);
}

static void add_work(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch)
{
	struct device_sums *sums = sums_of(sink->state, process->model, work->stream);
	uint64_t end_ns = work->start_ns + work->duration_ns;

	(void)launch;
	if (end_ns < work->start_ns)
		end_ns = UINT64_MAX;
	sums->counts[work->kind]++;
	sums->gpu_ns += work->duration_ns;
	sums->start_ns = work->start_ns < sums->start_ns ? work->start_ns : sums->start_ns;
	sums->end_ns = end_ns > sums->end_ns ? end_ns : sums->end_ns;
}

static void add_stretch(struct sink *sink, const struct process *process,
			const struct stretch *stretch)
{
	struct device_sums *sums = sums_of(sink->state, process->model, stretch->stream);

	collectives_add(&sums->collectives, &sums->sweep, stretch);
}

static void pack_device(struct pack *pack, struct device_sums *sums)
{
	PACK(pack, sums->counts);
	PACK(pack, sums->gpu_ns);
	PACK(pack, sums->collectives);
	PACK(pack, sums->start_ns);
	PACK(pack, sums->end_ns);
}

static void pack_log(struct sink *sink, const struct process *process, struct pack *pack)
{
	struct processes *s = sink->state;
	const struct process_sums *sums = &s->list[s->count - 1];
	uint64_t count = sums->device_count;

	PACK(pack, count);
	for (uint64_t d = 0; d < count && !pack->error; d++) {
		uint32_t device = pack->is_reading ? 0 : sums->devices[d].device;

		PACK(pack, device);
		if (!pack->error)
			pack_device(pack, sums_of_device(s, process->model, device));
	}
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	uint64_t exclusive_ns = total->weights[WEIGHT_GPU_EXCLUSIVE];
	uint64_t idle_ns = total->weights[WEIGHT_GPU_IDLE];
	struct device_sums *sums;

	(void)node;
	if (!exclusive_ns && !idle_ns)
		return;
	sums = sums_of(sink->state, process->model, total->owner.stream);
	sums->exclusive_ns += exclusive_ns;
	if (total->owner.leaf == LEAF_IDLE)
		sums->idle_ns[IDLE_WHAT_CLASS(total->owner.what)] += idle_ns;
}

static void free_state(struct sink *sink)
{
	struct processes *s = sink->state;

	for (size_t i = 0; s && i < s->count; i++) {
		struct process_sums *process = &s->list[i];

		for (size_t d = 0; d < process->device_count; d++) {
			free(process->devices[d].name);
			free(process->devices[d].uuid);
		}
		free_all(process->devices, process->label, process->name, process->title,
			 process->command);
	}
	if (s)
		free(s->list);
	free(s);
	sink->state = NULL;
}

const struct exporter analysis_processes = {.uses = USES_ORIGINS | USES_CPU_LOGS,
					    .begin = begin,
					    .process = add_process,
					    .work = add_work,
					    .stretch = add_stretch,
					    .total = add_total,
					    .pack = pack_log,
					    .free = free_state};
