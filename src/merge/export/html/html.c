/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the HTML report: one self-contained file with everything that people look at.
 *
 * It keeps call paths with their weights per device, thread and NVTX range, bins over time, as many
 * single events as the page has room for, and the summary JSON, which the page contains unchanged.
 */
#include "merge/export/formats.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/export/html/html_events.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/memory.h"
#include "merge/sums/run.h"

/* Adds a chart to the current process. Returns NULL beyond the limit. */
static struct chart *add_chart(struct html *html, uint32_t device,
			       const struct track_counter *counter)
{
	struct chart *chart;

	if (html->chart_count == HTML_TRACKS_MAX)
		return NULL;
	chart = xt_new(html->charts, html->chart_count, html->chart_capacity);
	*chart = (struct chart){
		.label = html_device(html, html->tracks.process, device),
		.device = device,
		.counter = counter,
	};
	bins_init(&chart->bins, counter ? 1 : TRACK_SERIES);
	return chart;
}

/* Returns the chart of a device of the current process; NULL beyond the limit. */
static struct chart *chart_of(struct html *html, uint32_t device)
{
	struct chart *chart;

	for (size_t c = html->first_chart; c < html->chart_count; c++)
		if (html->charts[c].device == device && !html->charts[c].counter)
			return &html->charts[c];
	chart = add_chart(html, device, NULL);
	html->chart_left_out_count += !chart;
	return chart;
}

/* Adds the part of the interval that no earlier one covers. */
static void add_union(struct chart *chart, enum track_series series, uint64_t from_ns,
		      uint64_t until_ns)
{
	uint64_t *ran_until_ns = &chart->until_ns[series];

	from_ns = larger(from_ns, *ran_until_ns);
	if (until_ns <= from_ns)
		return;
	bins_add(&chart->bins, series, from_ns, until_ns);
	*ran_until_ns = until_ns;
}

static void add_gap(struct chart *chart, uint64_t from_ns, const uint64_t pieces_ns[IDLE_CLASSES])
{
	for (size_t i = 0; i < IDLE_CLASSES; i++) {
		bins_add(&chart->bins, TRACK_IDLE + idle_order[i], from_ns,
			 from_ns + pieces_ns[idle_order[i]]);
		from_ns += pieces_ns[idle_order[i]];
	}
}

static void add_stretch(struct sink *sink, const struct process *process,
			const struct stretch *stretch)
{
	struct html *html = sink->state;
	struct chart *chart;
	uint64_t from_ns = html_time(process, stretch->start_ns);
	uint64_t until_ns = html_time(process, stretch->end_ns);
	uint64_t gap_from_ns = from_ns;

	html_events_add_work(html, process, stretch);
	chart = chart_of(html, stretch->device);
	if (!chart)
		return;
	if (stretch->gap.exists) {
		gap_from_ns = html_time(process, stretch->gap.from_ns);
		add_gap(chart, gap_from_ns, stretch->gap.idle_ns);
		/* In a part of a run, the first gap begins before the part. */
		html->first_ns = smaller(html->first_ns, gap_from_ns);
	}
	if (!chart->until_ns[TRACK_WORK] || gap_from_ns < chart->from_ns)
		chart->from_ns = gap_from_ns;
	add_union(chart, TRACK_WORK, from_ns, until_ns);
	if (stretch->is_collective)
		return;
	add_union(chart, TRACK_OTHER, from_ns, until_ns);
	add_union(chart, stretch->is_kernel ? TRACK_KERNELS : TRACK_COPIES, from_ns, until_ns);
}

/* The place of a counter's chart in the list, from 1; 0: it was left out. */
static size_t *html_place_of(struct track *track)
{
	return (size_t *)track->data;
}

static void put_track(struct tracks *t, struct track *track)
{
	struct html *html = (struct html *)t;
	bool is_of_device = track->parent && track->parent->kind == TRACK_DEVICE;

	if (track->kind == TRACK_COUNTER &&
	    add_chart(html, is_of_device ? track->parent->number : MEMORY_POOL_HOST,
		      track->counter))
		*html_place_of(track) = html->chart_count;
}

static void put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct html *html = (struct html *)t;
	uint64_t now_ns = html_time(t->process, time_ns);
	struct chart *chart;

	if (!*html_place_of(track)) {
		html->chart_left_out_count++;
		return;
	}
	chart = &html->charts[*html_place_of(track) - 1];
	now_ns = larger(now_ns, chart->level_ns);
	if (bins_used(&chart->bins))
		bins_raise(&chart->bins, 0, chart->level_ns, now_ns, chart->level);
	bins_raise(&chart->bins, 0, now_ns, now_ns, value);
	chart->level = value;
	chart->level_ns = now_ns;
}

/* Counters keep their value until the last event of the process. */
static void end_charts(struct html *html)
{
	for (size_t t = html->first_chart; t < html->chart_count; t++) {
		struct chart *chart = &html->charts[t];

		if (chart->counter && html->process_last_ns > chart->level_ns)
			bins_raise(&chart->bins, 0, chart->level_ns, html->process_last_ns,
				   chart->level);
	}
}

/* Adds the log's ranges to html->ranges. Parents come before their children. */
static void add_ranges(struct html *html, const struct model *model)
{
	const struct ranges *ranges = &model->ranges;

	xt_grow(html->process_ranges, html->process_range_capacity, ranges->nodes.count + 1);
	for (uint32_t r = 1; r < ranges->nodes.count; r++) {
		const struct range_node *range = &ranges->nodes.list[r];
		uint32_t node = paths_child(&html->ranges, html->process_ranges[range->parent],
					    range_label(&html->ranges.names, model, range->domain,
							range->text, "", ""));

		html->process_ranges[r] = node;
		xt_grow(html->range_openings, html->range_opening_capacity, node + 1);
		html->range_openings[node] += range->count;
	}
}

static void add_process(struct sink *sink, const struct process *process)
{
	struct html *html = sink->state;

	xt_grow(html->process_threads, html->process_thread_capacity,
		process->model->threads.count + 1);
	memset(html->process_threads, 0,
	       html->process_thread_capacity * sizeof(*html->process_threads));
	html->first_chart = html->chart_count;
	html->process_last_ns = 0;
	tracks_process(sink, process);
	add_ranges(html, process->model);
	html_events_add_process(&html->events, process);
}

static void note_times(struct html *html, const struct process *process, uint64_t start_ns,
		       uint64_t duration_ns)
{
	uint64_t from_ns = html_time(process, start_ns);
	uint64_t until_ns = from_ns + duration_ns;

	html->first_ns = from_ns < html->first_ns ? from_ns : html->first_ns;
	if (until_ns >= from_ns && until_ns > html->last_ns)
		html->last_ns = until_ns;
	if (until_ns >= from_ns && until_ns > html->process_last_ns)
		html->process_last_ns = until_ns;
}

static void html_add_call(struct tracks *t, const struct launch *call, uint64_t duration_ns,
			  uint64_t result)
{
	struct html *html = (struct html *)t;

	(void)result;
	note_times(html, t->process, call->enter_ns, duration_ns);
	html_events_add_call(html, t->process, call, duration_ns,
			     html_thread(html, t->process, call->thread));
}

static void add_work(struct tracks *t, const struct work *work, const struct launch *launch)
{
	(void)launch;
	note_times((struct html *)t, t->process, work->start_ns, work->duration_ns);
}

/* Returns NAME_EMPTY for work that belongs to no device. */
static uint32_t device_of(struct html *html, const struct process *process,
			  const struct owner *owner)
{
	const struct stream *stream = model_stream(process->model, owner->stream);

	if (owner->leaf == LEAF_MEMORY)
		return html_device(html, process, MEMORY_WHAT_POOL(owner->what));
	return stream->defined ? html_device(html, process, stream->device) : NAME_EMPTY;
}

static void add_sample(struct tracks *t, const struct cpu_sample *sample)
{
	struct html *html = (struct html *)t;

	note_times(html, t->process, sample->first_ns, sample->last_ns - sample->first_ns);
	html_events_add_sample(html, t->process, sample);
}

static int html_begin(struct sink *sink)
{
	static const struct track_writer writer = {
		.track_bytes = sizeof(size_t),
		.track = put_track,
		.counter = put_counter,
		.call = html_add_call,
		.work = add_work,
		.sample = add_sample,
	};
	struct html *html = sink->state;

	tracks_begin(sink, &writer);
	html->first_ns = UINT64_MAX;
	names_init(&html->devices.names);
	names_init(&html->threads.names);
	paths_init(&html->ranges);
	html_events_begin(&html->events, sink->settings->html_bytes_max);
	return 0;
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	struct html *html = sink->state;
	const struct owner *owner = &total->owner;
	struct sample sample = {
		.node = node,
		.device = device_of(html, process, owner),
		.thread = html_thread(html, process, owner->thread),
		.range = owner->range < process->model->ranges.nodes.count
				 ? html->process_ranges[owner->range]
				 : PATH_ROOT,
	};

	memcpy(sample.weights, total->weights, sizeof(sample.weights));
	xt_append(html->samples, html->sample_count, html->sample_capacity, sample);
	html_events_add_total(&html->events, process, total, node);
}

/* Returns the GPU of a process that has only one; NAME_EMPTY if there are several. */
static uint32_t only_device(const struct html *html, size_t process)
{
	uint32_t found = NAME_EMPTY;

	for (uint32_t n = NAME_EMPTY + 1; n < html->devices.names.count; n++) {
		const struct html_origin *origin = &html->devices.origins[n];

		if (origin->process != process || origin->id >= MEMORY_POOL_HOST)
			continue;
		if (found != NAME_EMPTY)
			return NAME_EMPTY;
		found = n;
	}
	return found;
}

/* Adds the weights that compare ranks, which belong to no thread and range. */
static void html_end(struct sink *sink, const struct run *run)
{
	struct html *html = sink->state;
	const struct rank_weights *weights = &run->compared->weights;

	xt_grow(html->samples, html->sample_capacity, html->sample_count + weights->count);
	for (size_t p = 0; p < weights->count; p++) {
		const struct rank_weight *part = &weights->list[p];

		struct sample sample = {.node = part->node, .device = only_device(html, part->log)};

		sample.weights[part->weight] = part->ns;
		html->samples[html->sample_count++] = sample;
	}
	html_put_page(sink, run);
}

static void end_process(struct sink *sink, const struct process *process)
{
	struct html *html = sink->state;

	tracks_process_end(sink, process);
	end_charts(html);
	html_events_end_process(html, process);
}

static void html_free_state(struct sink *sink)
{
	struct html *html = sink->state;

	for (size_t t = 0; t < html->chart_count; t++)
		bins_free(&html->charts[t].bins);
	free(html->charts);
	html_events_free(&html->events);
	html_labels_free(&html->devices);
	html_labels_free(&html->threads);
	paths_free(&html->ranges);
	free_all(html->range_openings, html->samples, html->process_ranges, html->process_threads);
	tracks_free(sink);
}

const struct exporter exporter_html = {
#ifndef XTRACE_HTML_TEMPLATE
	.absent = PAGE_ABSENT,
#endif
	.name = "html",
	.what = "Write a report for the browser with flame graph, timeline and tables, as one file "
		"that works offline",
	.analyses = all_analyses,
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_ORIGINS | USES_FINDINGS | USES_SIZE |
		USES_CPU_LOGS | USES_TIMELINE,
	.state_bytes = sizeof(struct html),
	.begin = html_begin,
	.process = add_process,
	.on.call = tracks_call,
	.on.work = tracks_work,
	.on.memory = tracks_memory,
	.on.stretch = add_stretch,
	.on.cpu_sample = tracks_sample,
	.total = add_total,
	.process_end = end_process,
	.end = html_end,
	.free = html_free_state,
};
