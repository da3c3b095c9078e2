/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/cpu_sums.h"

#include "merge/sums/owner.h"
#include "merge/sums/event_filter.h"

static void export_sample(struct reading *reading, const struct cpu_sample *sample)
{
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->on.cpu_sample && sink_reads(sink, &reading->process))
			sink->exporter->on.cpu_sample(sink, &reading->process, sample);
	}
}

static struct owner owner_of_sample(const struct reading *reading, const struct cpu_sample *sample)
{
	const struct run *run = reading->run;
	struct owner owner = {
		.leaf = LEAF_CPU,
		.what = sample->state,
		.stack = model_has_stack(reading->model, sample->stack) ? sample->stack : 0,
	};

	if (run->needs.origins)
		owner.thread = sample->thread < reading->model->threads.count ? sample->thread : 0;
	if (run->settings->by == BY_THREAD)
		owner.root = owner_root(run, reading->model, 0, sample->thread);
	else if (run->settings->by == BY_DEVICE || run->settings->by == BY_STREAM)
		owner.root = ROOT_HOST;
	return owner;
}

bool cpu_sums_wants(const struct reading *reading, const struct cpu_sample *sample)
{
	const struct selection *selection = reading->run->selection;

	return !selection || (!selection->wanted->patterns[PATTERN_RANGE] &&
			      event_filter_wants_time(reading, sample->first_ns));
}

void cpu_sums_add(struct reading *reading)
{
	const struct cpu_samples *samples = &reading->process.cpu->model->cpu_samples;

	for (size_t s = 0; s < samples->count; s++) {
		const struct cpu_sample *sample = &samples->rows[s];
		struct owner owner;
		uint32_t place;

		if (!cpu_sums_wants(reading, sample))
			continue;
		owner = owner_of_sample(reading, sample);
		place = aggregate_index(&reading->aggregate, &owner);
		reading->aggregate.entries[place]
			.weights[cpu_state_runs((enum xt_cpu_state)sample->state)
					 ? WEIGHT_CPU_TIME
					 : WEIGHT_OFF_CPU] += sample->weight_ns;
		export_sample(reading, sample);
	}
}
