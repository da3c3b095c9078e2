/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins calls and work, adds them up and passes them to the exporters.
 *
 * The path of one correlation id:
 * 1. call_rows.c and work_rows.c pass the rows of the call and of its work on.
 * 2. correlate.c joins them and calls attribute_work() in sums/attribute.c. Work that the GPU
 *   itself launched in a graph has no id: replays.c finds its call instead.
 * 3. attribute_work() finds the owner of the work and adds it to sums/aggregate.c.
 * 4. After the last event, sums/build_tree.c turns owners into call paths.
 * 5. An exporter, such as export/folded/folded.c, writes the paths.
 */
#include "merge/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/chunk_rows.h"
#include "merge/read/prefetch.h"
#include "merge/read/model_rows.h"
#include "merge/reading.h"
#include "merge/sums/event_filter.h"
#include "merge/sums/attribute.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/owner.h"

#define BLIND_PART	10 /* idle time is unknown if one launch in so many has no work */
#define RECORDED_MIN_NS 1000000
#define SMALL_LOG_BYTES (256u << 10)

/* Adds the summary row for the memory of a pool. */
static void add_memory_row(struct reading *reading, uint32_t pool)
{
	struct run *run = reading->run;
	const struct process *process = &reading->process;
	const struct memory_pool *sums = &reading->memory.pools[pool];
	char device[32];
	char *label;

	if (!sums->alloc_count && !sums->free_count)
		return;
	xt_grow(&run->memory, &run->memory_row_capacity, run->memory_row_count + 1,
		sizeof(*run->memory));
	snprintf(device, sizeof(device),
		 pool == MEMORY_POOL_HOST	? "host"
		 : pool == MEMORY_POOLS_MAX - 1 ? "other devices"
						: "GPU%u",
		 pool);
	label = xt_asprintf("%s%s%s", device, process->process_count > 1 ? " of " : "",
			    process->process_count > 1 ? process->label : "");
	run->memory[run->memory_row_count++] = (struct memory_row){
		.label = names_intern(&run->paths.names, label, strlen(label)),
		.pool = *sums,
		.peak_ns = (int64_t)(sums->peak_ns - (uint64_t)process->origin_ns),
	};
	free(label);
}

static void finish_memory(struct reading *reading)
{
	struct memory_counts *sums = &reading->run->memory_counts;
	const struct memory_counts *counts = &reading->memory.counts;

	/* If only a part of the run is selected, the other half of a pair may be outside of it. */
	if (!reading->run->selection) {
		/* Memory that is freed may have been allocated when the log has no events. */
		if (!reading->model->stops.count && !model_is_cut(reading->model))
			sums->free_unmatched += counts->free_unmatched;
		sums->alloc_over += counts->alloc_over;
		sums->unowned += counts->unowned;
	}
	sums->late_count += counts->late_count;
	for (uint32_t pool = 0; pool < MEMORY_POOLS_MAX; pool++)
		add_memory_row(reading, pool);
}

static void finish_transfers(struct reading *reading)
{
	const struct model *model = reading->model;
	struct run *run = reading->run;
	struct names *names = &run->paths.names;

	for (size_t s = 0; s < model->copy_shapes.count; s++)
		if (reading->copies[s].count)
			transfers_add_copies(&run->transfers, names, &model->copy_shapes.rows[s],
					     &reading->copies[s]);
	for (uint32_t m = 0; m < MEMORY_KINDS; m++)
		if (reading->memsets[m].count)
			transfers_add_memsets(&run->transfers, names, m, &reading->memsets[m]);
}

/*
 * Returns whether so many launches lack work that gaps may not be idle. A selection may exclude it.
 */
static bool lacks_work(const struct run *run, const struct correlate_counts *counts)
{
	uint64_t alone = counts->launches_unmatched + counts->graph_launches_unmatched;

	return !run->selection && alone > (alone + counts->work_joined) / BLIND_PART;
}

/*
 * Completes the sums after the last event. Frees large memory early: other logs may be read before
 * the sums of this log are added to the run.
 */
static int finish(struct reading *reading)
{
	const struct correlate_counts *counts = correlate_finish(reading->correlate);
	struct run *run = reading->run;

	if (reading->replays)
		replays_finish(reading->replays);
	whole_graphs_finish(reading);
	memory_finish(&reading->memory, model_account(reading->model, "kinds.lost.memory"));
	reading->is_blind = lacks_work(run, counts);
	if (!run->selection) {
		run->launch_unmatched_count +=
			counts->launches_unmatched + counts->graph_launches_unmatched;
		run->transfer_unmatched_count += counts->transfers_unmatched;
	}
	run->calls_recurring_count += counts->launches_recurring;
	if (reading->timeline) {
		uint64_t missed_count = timeline_finish(reading->timeline);

		reading->collectives = reading->timeline->collectives;

		if (run->weights & (1u << WEIGHT_GPU_EXCLUSIVE | 1u << WEIGHT_GPU_IDLE))
			run->timeline_missed_count += missed_count;
		if (run->weights & 1u << WEIGHT_GPU_IDLE)
			run->idle_unknown_ns += reading->timeline->unknown_ns;
	}
	/* Counts the missing kernels of the whole log: they may belong to the selected part. */
	reading->kernel_missing_count =
		missing_count(&reading->missing, reading->model, &reading->damage, counts,
			      &run->launch_unclear_count);
	correlate_free(reading->correlate);
	timeline_free(reading->timeline);
	reading->correlate = NULL;
	reading->timeline = NULL;
	return reading->error;
}

static void add_handoffs(struct run *run, const struct model *model)
{
	const struct cupti_handoffs *cupti_handoffs = &model->cupti_handoffs;

	if (!cupti_handoffs->count)
		return;
	if (!run->handoff_count)
		snprintf(run->handed_off_to, sizeof(run->handed_off_to), "%s",
			 names_text(&model->names, cupti_handoffs->who, NULL));
	run->handoff_count += cupti_handoffs->count;
	run->handed_off_ns += cupti_handoffs->total_ns;
	if (cupti_handoffs->since_ns && model->last_clock_ns > cupti_handoffs->since_ns)
		run->handed_off_ns += model->last_clock_ns - cupti_handoffs->since_ns;
}

static void add_rates(struct run *run, const struct model *model)
{
	const struct stack_rates *rates = &model->rates;

	if (!rates->one_in_max)
		return;
	run->sampled_ns += rates->total_ns;
	if (rates->since_ns && model->last_clock_ns > rates->since_ns)
		run->sampled_ns += model->last_clock_ns - rates->since_ns;
	if (!run->one_in_min || rates->one_in_min < run->one_in_min)
		run->one_in_min = rates->one_in_min;
	if (rates->one_in_max > run->one_in_max)
		run->one_in_max = rates->one_in_max;
}

/* The process may have run for long before xtrace attach loaded the tracer. */
static void add_attach(struct run *run, const struct model *model,
		       const struct xt_log_header *header)
{
	uint64_t attached_ns = strtoull(model_meta(model, "process.attached"), NULL, 10);
	uint64_t start_ns = model_process_start_ns(model, header);

	if (!attached_ns)
		return;
	run->attached_count++;
	if (attached_ns > start_ns && attached_ns - start_ns > run->attached_ns)
		run->attached_ns = attached_ns - start_ns;
}

/* Only with pauses. An armed process is on for a moment until it is switched off. */
static void add_recorded_time(struct run *run, const struct model *model)
{
	uint64_t paused_ns = pauses_total_ns(&model->pauses, model->last_clock_ns);
	uint64_t from_ns = model->from_ns > model->start_ns ? model->from_ns : model->start_ns;

	if (model->pauses.count && model->last_clock_ns > from_ns + paused_ns + RECORDED_MIN_NS)
		run->recorded_ns += model->last_clock_ns - from_ns - paused_ns;
}

/* Whether graphs without nodes in the log were made before recording. Not for a part of a run. */
static bool began_late(const struct run *run, const struct model *model)
{
	bool has_resumed = model->pauses.count && model->pauses.rows[0].until_ns != UINT64_MAX;

	return (has_resumed || *model_meta(model, "process.attached")) && !model_is_cut(model) &&
	       !run->selection;
}

void reading_finish(struct reading *reading)
{
	const struct model *model = reading->model;
	struct run *run = reading->run;

	run->nodes_cyclic_count += model->nodes.cyclic_count;
	run->pause_count += model->pauses.count;
	run->cut_count += model_is_cut(model);
	run->stop_count += model->stops.count;
	run->paused_ns += pauses_total_ns(&model->pauses, model->last_clock_ns);
	add_recorded_time(run, model);
	add_attach(run, model, &reading->process.log->header);
	if (began_late(run, model))
		run->early_graph_count += reading->missing.unseen_launch_count;
	add_handoffs(run, model);
	add_rates(run, model);
	run->nodes_made_count += model->nodes.made_count;
	range_counts_add(&run->range_counts, &model->ranges.counts, model_is_cut(model));
	run->collectives.count += reading->collectives.count;
	run->collectives.gpu_ns += reading->collectives.gpu_ns;
	run->collectives.alone_ns += reading->collectives.alone_ns;
	finish_memory(reading);
	finish_transfers(reading);
}

/* Returns whether kernels are or may be lost. */
static bool lost_kernels(const struct model *model, const struct xt_damage *damage)
{
	return damage->truncated || !damage->closed || damage->chunks_damaged ||
	       damage->chunks_missing || model_account(model, "kernels.lost.write_failed") ||
	       (model_account(model, "kernels.lost.size") && !model_is_flight_recording(model)) ||
	       model_account(model, "kernels.lost.leaving");
}

static void begin(struct reading *reading)
{
	struct work_receiver receiver = {attribute_work, reading, reading->model->from_ns};
	struct memory_listener memory_listener = {reading_memory_changed, reading};
	struct timeline_listener timeline_listener = {reading_ran, reading};
	bool wants_exclusive = run_wants(reading->run, WEIGHT_GPU_EXCLUSIVE);
	bool wants_idle = run_wants(reading->run, WEIGHT_GPU_IDLE);
	bool compares_ranks = reading->run->compares_ranks && reading->model->has_collectives;

	reading->exports_calls = wants_idle || run_wants(reading->run, WEIGHT_CPU_WAIT);
	for (size_t e = 0; e < reading->sink_count; e++) {
		reading->exports_calls |= reading->sinks[e].exporter->call != NULL;
		reading->exports_work |= reading->sinks[e].exporter->work != NULL;
	}
	reading->observes_calls = reading->exports_calls || reading->run->selection ||
				  reading->run->wants_findings || compares_ranks ||
				  reading->model->ranges.thread_count;
	if (reading->run->wants_findings)
		callsites_init(&reading->callsites, reading->model, &reading->threads);
	memory_init(&reading->memory, &reading->aggregate, &reading->model->stops, memory_listener);
	reading->copies = xt_calloc(reading->model->copy_shapes.count, sizeof(*reading->copies));
	reading_find_stacks(reading);
	threads_init(&reading->threads, reading->model);
	idle_paths_begin(&reading->idle_paths, reading->run->cpu_logs, reading->process.log,
			 reading->model, &reading->threads, &reading->aggregate);
	if (compares_ranks) {
		reading->idle_paths.given = rank_log_add_idle;
		reading->idle_paths.context = reading;
	}
	if (wants_exclusive || wants_idle) {
		reading->timeline = timeline_new(wants_exclusive, wants_idle, &reading->aggregate,
						 &reading->threads, &reading->model->pauses,
						 &reading->idle_paths, timeline_listener);
		reading->timeline->is_damaged =
			lost_kernels(reading->model, &reading->model->damage);
	}
	if (reading->model->nodes.conditional_count) {
		replays_new(&reading->replays, &reading->model->nodes, &reading->model->pauses,
			    receiver);
		receiver.attribute = attribute_work_with_id;
	}
	reading->sums_plainly = !reading->timeline && !reading->run->selection &&
				!reading->exports_work && !reading->run->wants_origins &&
				reading->run->settings->by == BY_NONE;
	correlate_new(&reading->correlate, NULL, receiver);
}

/*
 * Adds up the damage of both passes. Both passes skipped the same damaged parts of the file. Only
 * the pass that decompresses a kind of chunk finds damage inside it.
 */
static void add_damage(struct xt_damage *sum, const struct xt_damage *first,
		       const struct xt_damage *second)
{
	*sum = *second;
	sum->closed = first->closed && second->closed;
	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		if (!second->damaged_by_kind[kind])
			sum->chunks_damaged += first->damaged_by_kind[kind];
}

/* Starting a thread takes longer than it saves in a small log. */
static size_t helpers_wanted(const struct xt_reader *reader, size_t helper_count)
{
	uint64_t done_bytes, all_bytes;

	xt_reader_position(reader, &done_bytes, &all_bytes);
	return all_bytes < SMALL_LOG_BYTES ? 0 : helper_count;
}

int reading_events(struct reading *reading, struct xt_reader *reader, size_t helper_count,
		   struct progress *progress)
{
	const struct xt_chunk *chunk;
	uint64_t done_bytes, all_bytes;
	struct prefetch *prefetch;
	int error;

	begin(reading);
	prefetch = prefetch_open(reader, chunk_row_kinds(), chunk_row_packed_kinds(),
				 helpers_wanted(reader, helper_count));
	while (!reading->error && (chunk = prefetch_next(prefetch))) {
		enum xt_kind kind = xt_chunk_kind(chunk);

		if (!(model_row_kinds() & 1u << kind)) /* the model has counted the other kinds */
			reading->model->rows_read[kind] += xt_chunk_rows(chunk);
		if (reading->timeline && prefetch_damaged(prefetch))
			reading->timeline->is_damaged = true;
		chunk_rows_read(reading, chunk);
		if (progress)
			progress_at(progress, prefetch_position(prefetch));
	}
	prefetch_close(prefetch);
	xt_reader_position(reader, &done_bytes, &all_bytes);
	if (progress)
		progress_done(progress, done_bytes);
	add_damage(&reading->damage, &reading->model->damage, xt_reader_damage(reader));
	error = finish(reading);
	reading->is_blind &= lost_kernels(reading->model, &reading->damage);
	return error;
}

bool sinks_want_events(const struct sink *sinks, size_t sink_count)
{
	for (size_t e = 0; e < sink_count; e++) {
		const struct exporter *exporter = sinks[e].exporter;

		if (exporter->call || exporter->work || exporter->memory || exporter->stretch ||
		    exporter->range)
			return true;
	}
	return false;
}

void reading_free(struct reading *reading)
{
	correlate_free(reading->correlate);
	replays_free(reading->replays);
	timeline_free(reading->timeline);
	memory_free(&reading->memory);
	threads_free(&reading->threads);
	event_filter_free(&reading->event_filter);
	missing_free(&reading->missing);
	whole_graphs_free(&reading->whole_graphs);
	callsites_free(&reading->callsites);
	aggregate_free(&reading->aggregate);
	idle_paths_free(&reading->idle_paths);
	rank_log_free(&reading->rank_log);
	free(reading->copies);
	free(reading->has_stack);
}
