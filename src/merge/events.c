/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins calls and work, adds them up and passes them to the exporters.
 *
 * The path of one correlation id:
 * 1. chunk_rows.c passes the rows of the call and of its work on.
 * 2. correlate.c joins them and calls attribute_work() in sums/attribute.c. Work that the GPU
 *   itself launched in a graph has no id: replays_join() finds its call instead.
 * 3. attribute_work() finds the owner of the work and adds it to sums/aggregate.c.
 * 4. After the last event, sums/build_tree.c turns owners into call paths.
 * 5. An exporter, such as export/folded.c, writes the paths.
 */
#include "merge/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/chunk_rows.h"
#include "merge/read/prefetch.h"
#include "merge/read/model_load.h"
#include "merge/sums/event_filter.h"
#include "merge/sums/attribute.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/owner.h"
#include "merge/sums/sums.h"

#define BLIND_PART	10 /* idle time is unknown if one launch in so many has no work */
#define SMALL_LOG_BYTES (256u << 10)

static void finish_transfers(struct reading *reading)
{
	const struct model *model = reading->model;
	struct transfers *transfers = &reading->run->sums->transfers;
	struct names *names = &reading->run->paths.names;

	for (size_t s = 0; s < model->copy_shapes.count; s++)
		if (reading->sums.copies[s].count)
			transfers_add_copies(transfers, names, &model->copy_shapes.rows[s],
					     &reading->sums.copies[s]);
	for (uint32_t m = 0; m < MEMORY_KINDS; m++)
		if (reading->sums.memsets[m].count)
			transfers_add_memsets(transfers, names, m, &reading->sums.memsets[m]);
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
static void finish(struct reading *reading)
{
	const struct correlate_counts *joined = correlate_finish(reading->join.correlate);
	struct log_counts *counts = &reading->sums.counts;
	const struct run *run = reading->run;

	if (reading->join.replays)
		replays_finish(reading->join.replays);
	whole_graphs_finish(reading);
	memory_finish(&reading->sums.memory, model_account(reading->model, "kinds.lost.memory"));
	reading->gaps.is_blind = lacks_work(run, joined);
	if (!run->selection) {
		counts->calls.launch_unmatched_count +=
			joined->launches_unmatched + joined->graph_launches_unmatched;
		counts->calls.transfer_unmatched_count += joined->transfers_unmatched;
	}
	counts->calls.calls_recurring_count += joined->launches_recurring;
	if (reading->gaps.timeline) {
		uint64_t missed_count = timeline_finish(reading->gaps.timeline);

		reading->gaps.collectives = reading->gaps.timeline->collectives;

		if (run->needs.weights & (1u << WEIGHT_GPU_EXCLUSIVE | 1u << WEIGHT_GPU_IDLE))
			counts->work.timeline_missed_count += missed_count;
		if (run->needs.weights & 1u << WEIGHT_GPU_IDLE)
			counts->work.idle_unknown_ns += reading->gaps.timeline->unknown_ns;
	}
	/* Counts the missing kernels of the whole log: they may belong to the selected part. */
	reading->join.kernel_missing_count =
		missing_count(&reading->join.missing, reading->model, &reading->damage, joined,
			      &counts->calls.launch_unclear_count);
	correlate_free(reading->join.correlate);
	timeline_free(reading->gaps.timeline);
	reading->join.correlate = NULL;
	reading->gaps.timeline = NULL;
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
	struct sums *sums = run->sums;

	sums->events.work.nodes_cyclic_count += model->nodes.cyclic_count;
	recording_add(&sums->recording, model, &reading->process.log->header);
	if (began_late(run, model))
		sums->recording.early_graph_count += reading->join.missing.unseen_launch_count;
	handoffs_add(&sums->handoffs, model);
	stack_sampling_add(&sums->sampling, model);
	range_counts_add(&sums->ranges.counts, &model->ranges.counts, model_is_cut(model));
	sums->collectives.count += reading->gaps.collectives.count;
	sums->collectives.gpu_ns += reading->gaps.collectives.gpu_ns;
	sums->collectives.alone_ns += reading->gaps.collectives.alone_ns;
	memory_sums_add(&sums->memory, reading);
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
	bool compares_ranks = reading->run->needs.ranks && reading->model->has_collectives;

	reading->plan.exports_calls = wants_idle || run_wants(reading->run, WEIGHT_CPU_WAIT);
	for (size_t e = 0; e < reading->sink_count; e++) {
		reading->plan.exports_calls |= reading->sinks[e].exporter->on.call != NULL;
		reading->plan.exports_work |= reading->sinks[e].exporter->on.work != NULL;
	}
	reading->plan.observes_calls = reading->plan.exports_calls || reading->run->selection ||
				       reading->run->needs.findings || compares_ranks ||
				       reading->model->ranges.thread_count;
	if (reading->run->needs.findings)
		callsites_init(&reading->sums.callsites, reading->model, &reading->gaps.threads);
	memory_init(&reading->sums.memory, &reading->aggregate, &reading->model->stops,
		    memory_listener);
	reading->sums.copies =
		xt_calloc(reading->model->copy_shapes.count, sizeof(*reading->sums.copies));
	reading_find_stacks(reading);
	threads_init(&reading->gaps.threads, reading->model);
	idle_paths_begin(&reading->gaps.idle_paths, reading->run->cpu->logs, reading->process.log,
			 reading->model, &reading->gaps.threads, &reading->aggregate);
	if (compares_ranks) {
		reading->gaps.idle_paths.given = rank_log_add_idle;
		reading->gaps.idle_paths.context = reading;
	}
	if (wants_exclusive || wants_idle) {
		reading->gaps.timeline = timeline_new(
			wants_exclusive, wants_idle, &reading->aggregate, &reading->gaps.threads,
			&reading->model->pauses, &reading->gaps.idle_paths, timeline_listener);
		reading->gaps.timeline->is_damaged =
			lost_kernels(reading->model, &reading->model->damage);
	}
	if (reading->model->nodes.conditional_count) {
		replays_new(&reading->join.replays, &reading->model->nodes, &reading->model->pauses,
			    receiver);
		receiver.attribute = attribute_work_with_id;
	}
	reading->plan.sums_plainly = !reading->gaps.timeline && !reading->run->selection &&
				     !reading->plan.exports_work && !reading->run->needs.origins &&
				     reading->run->settings->by == BY_NONE;
	correlate_new(&reading->join.correlate, NULL, receiver);
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

void reading_events(struct reading *reading, struct xt_reader *reader, size_t helper_count,
		    struct progress *progress)
{
	const struct xt_chunk *chunk;
	uint64_t done_bytes, all_bytes;
	struct prefetch *prefetch;

	begin(reading);
	prefetch = prefetch_open(reader, chunk_row_kinds(), chunk_row_packed_kinds(),
				 helpers_wanted(reader, helper_count));
	while ((chunk = prefetch_next(prefetch))) {
		enum xt_kind kind = xt_chunk_kind(chunk);

		if (!(model_row_kinds() & 1u << kind)) /* the model has counted the other kinds */
			reading->model->rows_read[kind] += xt_chunk_rows(chunk);
		if (reading->gaps.timeline && prefetch_damaged(prefetch))
			reading->gaps.timeline->is_damaged = true;
		chunk_rows_read(reading, chunk);
		if (progress)
			progress_at(progress, prefetch_position(prefetch));
	}
	prefetch_close(prefetch);
	xt_reader_position(reader, &done_bytes, &all_bytes);
	if (progress)
		progress_done(progress, done_bytes);
	add_damage(&reading->damage, &reading->model->damage, xt_reader_damage(reader));
	finish(reading);
	reading->gaps.is_blind &= lost_kernels(reading->model, &reading->damage);
}

bool sinks_want_events(const struct sink *sinks, size_t sink_count)
{
	for (size_t e = 0; e < sink_count; e++) {
		const struct exporter *exporter = sinks[e].exporter;

		if (exporter->on.call || exporter->on.work || exporter->on.memory ||
		    exporter->on.stretch || exporter->on.range)
			return true;
	}
	return false;
}

void reading_free(struct reading *reading)
{
	correlate_free(reading->join.correlate);
	replays_free(reading->join.replays);
	timeline_free(reading->gaps.timeline);
	memory_free(&reading->sums.memory);
	threads_free(&reading->gaps.threads);
	event_filter_free(&reading->event_filter);
	missing_free(&reading->join.missing);
	whole_graphs_free(&reading->join.whole_graphs);
	callsites_free(&reading->sums.callsites);
	aggregate_free(&reading->aggregate);
	idle_paths_free(&reading->gaps.idle_paths);
	rank_log_free(&reading->sums.rank_log);
	free(reading->sums.copies);
	free(reading->join.has_stack);
}
