/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins calls and work, adds them up and passes them to the exporters.
 *
 * The path of one correlation id:
 * 1. read_call() and read_work() decode the rows of the call and of its work.
 * 2. correlate.c joins them and calls attribute_work() in sums/attribute.c. Work that the GPU
 *   itself launched in a graph has no id: replays.c finds its call instead.
 * 3. attribute_work() finds the owner of the work and adds it to sums/aggregate.c.
 * 4. After the last event, sums/build_tree.c turns owners into call paths.
 * 5. An exporter, such as export/folded/folded.c, writes the paths.
 */
#include "merge/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/read/prefetch.h"
#include "merge/read/model_rows.h"
#include "merge/reading.h"
#include "merge/sums/event_filter.h"
#include "merge/sums/attribute.h"
#include "merge/sums/build_tree.h"

#define BLIND_PART 10 /* idle time is unknown if one launch in so many has no work */

static uint32_t narrow(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
}

/* Returns false if the start is 0 or the end is before the start. */
static bool has_valid_times(uint64_t start_ns, uint64_t duration_ns)
{
	return start_ns && duration_ns <= INT64_MAX && start_ns <= INT64_MAX - duration_ns;
}

/* Passes a call to findings and exporters. */
static void export_call(struct reading *reading, struct launch *call, uint64_t duration_ns,
			uint64_t own_ns, uint64_t result)
{
	if (reading->run->weights >> WEIGHT_CPU_WAIT & 1 &&
	    threads_waits(&reading->threads, call->api))
		reading_add_wait(reading, call, own_ns);
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->call &&
		    sink->exporter->call(sink, &reading->process, call, duration_ns, result) < 0)
			reading->error = -ENOMEM;
	}
}

static void count_call(struct run *run, uint8_t flags, bool has_failed)
{
	if (flags & LAUNCH_TRANSFER) {
		run->transfer_call_count++;
	} else if (flags && !(flags & LAUNCH_MEMORY)) {
		run->launch_count++;
		run->launch_failed_count += has_failed;
	}
}

/* Captured launches and launches of graphs without kernels have no kernel: do not expect one. */
static void expect_kernel(struct reading *reading, struct launch *call, bool made_nodes,
			  uint32_t graph_exec)
{
	bool has_no_kernel = false;

	if ((call->flags & (LAUNCH_EXPECTED | LAUNCH_MEMORY)) != LAUNCH_EXPECTED)
		return;
	if (!made_nodes && call->flags & LAUNCH_GRAPH &&
	    missing_note_graph_launch(&reading->missing, reading->model, graph_exec,
				      &has_no_kernel) < 0)
		reading->error = -ENOMEM;
	if (!made_nodes && !has_no_kernel)
		return;
	call->flags &= (uint8_t)~LAUNCH_EXPECTED;
	if (reading->run->selection || call->flags & LAUNCH_TRANSFER ||
	    call->enter_ns < reading->model->from_ns)
		return;
	reading->run->launch_captured_count += made_nodes;
	reading->run->launch_kernelless_count += has_no_kernel;
}

static void read_call(struct reading *reading, struct launch *call, uint64_t duration_ns,
		      uint64_t result, uint32_t graph_exec)
{
	struct model *model = reading->model;
	uint64_t own_ns = duration_ns;
	bool is_left_out = call->enter_ns < model->from_ns; /* only here for later work */

	call->duration_ns = duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX;
	if (model->ranges.thread_count && !call->range)
		call->range = model_range_at(
			model, &(struct range_call){call->thread, call->stack, call->enter_ns}, 0);
	if ((run_wants(reading->run, WEIGHT_GPU_IDLE) ||
	     run_wants(reading->run, WEIGHT_CPU_WAIT)) &&
	    threads_add_call(&reading->threads, call, call->enter_ns + duration_ns, &own_ns) < 0)
		reading->error = -ENOMEM;
	if (!is_left_out && (!reading->run->selection || event_filter_wants_call(reading, call))) {
		count_call(reading->run, call->flags, result != 0);
		if (reading->run->wants_findings)
			callsites_add_call(&reading->callsites, call, own_ns, result);
		if (reading->exports_calls)
			export_call(reading, call, duration_ns, own_ns, result);
	}
	if (result)
		call->flags &= (uint8_t)~LAUNCH_EXPECTED;
	if ((call->flags & (LAUNCH_EXPECTED | LAUNCH_MEMORY)) == LAUNCH_EXPECTED)
		call->since_ns = threads_note_submission(&reading->threads, call);
	expect_kernel(reading, call,
		      nodes_note_call(&model->nodes, call->thread, call->enter_ns,
				      call->enter_ns + duration_ns, call->api),
		      graph_exec);
	correlate_commit(reading->correlate);
}

/* Flags for the join, by class of call. */
static const uint8_t class_flags[XT_API_CLASSES] = {
	[XT_API_LAUNCH] = LAUNCH_EXPECTED,
	[XT_API_GRAPH_LAUNCH] = LAUNCH_EXPECTED | LAUNCH_GRAPH,
	[XT_API_COPY] = LAUNCH_EXPECTED | LAUNCH_TRANSFER,
	[XT_API_SET] = LAUNCH_EXPECTED | LAUNCH_TRANSFER,
	[XT_API_ALLOC] = LAUNCH_EXPECTED | LAUNCH_MEMORY,
};

/* Makes a correlation id unique in the log. Keeps 0, which means an unknown call. */
static uint64_t unique_correlation(const struct model *model, uint64_t correlation,
				   uint64_t time_ns)
{
	return correlation ? correlation + model_numbering(model, time_ns) : 0;
}

/* Rates beyond the largest are stored as the largest. */
static uint8_t rate_flags(uint64_t one_in)
{
	uint8_t shift = (uint8_t)(63 - __builtin_clzll(one_in));

	return (uint8_t)((shift < 7 ? shift : 7) << LAUNCH_RATE_BIT);
}

/* Sets the stack and the range of a call inside PyTorch. */
static __attribute__((noinline)) void join_backward(struct reading *reading,
						    const struct xt_chunk *chunk, uint32_t row,
						    struct launch *call)
{
	const struct autograd_call autograd = {
		.stack = call->stack,
		.state = narrow(xt_chunk_u64(chunk, XT_CALL_AUTOGRAD)[row]),
		.sequence = xt_chunk_u64(chunk, XT_CALL_SEQUENCE)[row],
		.node_sequence = xt_chunk_u64(chunk, XT_CALL_NODE_SEQUENCE)[row],
		.is_sampled = xt_chunk_u64(chunk, XT_CALL_ONE_IN)[row] > 1,
	};
	struct model *model = reading->model;

	call->range = model_range_at(
		model, &(struct range_call){call->thread, call->stack, call->enter_ns},
		autograd.state);
	if (reading->run->settings->frames.backward != BACKWARD_ENGINE &&
	    autograd_join(&model->autograd, &autograd, &call->stack) < 0)
		reading->error = -ENOMEM;
}

static void read_calls(struct reading *reading, const struct xt_chunk *chunk)
{
	const uint64_t *thread = xt_chunk_u64(chunk, XT_CALL_THREAD);
	const uint64_t *api = xt_chunk_u64(chunk, XT_CALL_API);
	const uint64_t *correlation = xt_chunk_u64(chunk, XT_CALL_CORRELATION);
	const uint64_t *stack = xt_chunk_u64(chunk, XT_CALL_STACK);
	const uint64_t *enter_ns = xt_chunk_u64(chunk, XT_CALL_ENTER_NS);
	const uint64_t *duration_ns = xt_chunk_u64(chunk, XT_CALL_DURATION_NS);
	const uint64_t *result = xt_chunk_u64(chunk, XT_CALL_RESULT);
	const uint64_t *one_in = xt_chunk_u64(chunk, XT_CALL_ONE_IN);
	const uint64_t *graph_exec = xt_chunk_u64(chunk, XT_CALL_GRAPH_EXEC);
	const uint64_t *autograd = xt_chunk_u64(chunk, XT_CALL_AUTOGRAD);
	const struct model *model = reading->process.model;

	uint32_t row_count = xt_chunk_rows(chunk);
	uint64_t last_api = row_count ? api[0] : 0;
	uint16_t place = model_api(model, last_api);

	for (uint32_t r = 0; r < row_count && !reading->error; r++) {
		struct launch *call = correlate_reserve(reading->correlate);
		bool is_valid;

		if (!call) {
			reading->error = -ENOMEM;
			return;
		}
		if (api[r] != last_api) {
			last_api = api[r];
			place = model_api(model, last_api);
		}
		*call = (struct launch){
			.correlation = unique_correlation(model, correlation[r], enter_ns[r]),
			.enter_ns = enter_ns[r],
			.stack = narrow(stack[r]),
			.thread = narrow(thread[r]),
			.api = place,
			.flags = class_flags[model->apis.rows[place].class],
		};
		if (one_in[r] > 1 && call->flags)
			call->flags |= rate_flags(one_in[r]);
		if (autograd[r])
			join_backward(reading, chunk, r, call);
		is_valid = has_valid_times(enter_ns[r], duration_ns[r]);
		reading->run->calls_invalid_count += !is_valid;
		read_call(reading, call, is_valid ? duration_ns[r] : 0, result[r],
			  narrow(graph_exec[r]));
	}
}

/* Differences between kernels, copies and memsets. */
static const struct {
	unsigned shape_column;
	unsigned bytes_column; /* an absent column is all zeros */
	uint8_t kind;
} work_columns[XT_KIND_COUNT] = {
	[XT_KIND_KERNEL] = {XT_KERNEL_SHAPE, XT_COPY_BYTES, WORK_KERNEL},
	[XT_KIND_COPY] = {XT_COPY_SHAPE, XT_COPY_BYTES, WORK_COPY},
	[XT_KIND_SET] = {XT_SET_MEMORY, XT_SET_BYTES, WORK_MEMSET},
};

/* The weight of work may depend on other work, so it is computed in time order. */
static void add_to_timeline(struct reading *reading, struct work *work)
{
	const struct model *model = reading->model;
	const struct stream *stream =
		&model->streams.rows[work->stream < model->streams.count ? work->stream : 0];
	struct owner owner;

	owner_without_call(reading, work, &owner);
	timeline_add(reading->timeline, stream->defined ? stream->device : ROOT_UNKNOWN, work,
		     &owner, &work->ticket);
}

static void read_work(struct reading *reading, const struct xt_chunk *chunk)
{
	const struct model *model = reading->model;
	enum xt_kind kind = xt_chunk_kind(chunk);
	const uint64_t *correlation = xt_chunk_u64(chunk, XT_KERNEL_CORRELATION);
	const uint64_t *stream = xt_chunk_u64(chunk, XT_KERNEL_STREAM);
	const uint64_t *shape = xt_chunk_u64(chunk, work_columns[kind].shape_column);
	const uint64_t *start_ns = xt_chunk_u64(chunk, XT_KERNEL_START_NS);
	const uint64_t *duration_ns = xt_chunk_u64(chunk, XT_KERNEL_DURATION_NS);
	const uint64_t *graph_node = xt_chunk_u64(chunk, XT_KERNEL_GRAPH_NODE);
	const uint64_t *bytes = xt_chunk_u64(chunk, work_columns[kind].bytes_column);
	uint32_t row_count = xt_chunk_rows(chunk);

	for (uint32_t r = 0; r < row_count && !reading->error; r++) {
		struct work work = {
			.correlation = unique_correlation(model, correlation[r], start_ns[r]),
			.start_ns = start_ns[r],
			.duration_ns = duration_ns[r],
			.graph_node = graph_node[r],
			.bytes = bytes[r],
			.stream = narrow(stream[r]),
			.shape = narrow(shape[r]),
			.kind = work_columns[kind].kind,
		};
		if (kind == XT_KIND_KERNEL && work.shape < model->shapes.count)
			work.is_collective = model->shapes.rows[work.shape].is_collective;

		if (!has_valid_times(start_ns[r], duration_ns[r])) {
			reading->run->work_invalid_count++;
			reading->kernel_invalid_count += kind == XT_KIND_KERNEL;
			continue;
		}
		if (kind == XT_KIND_KERNEL && work.graph_node && work.correlation &&
		    missing_note_graph_kernel(&reading->missing, model, work.graph_node) < 0)
			reading->error = -ENOMEM;
		if (reading->timeline)
			add_to_timeline(reading, &work);
		if (reading->replays && work_is_by_device(&work))
			replays_join(reading->replays, &work);
		else if (correlate_work(reading->correlate, &work) < 0)
			reading->error = -ENOMEM;
	}
}

static void read_memory(struct reading *reading, const struct xt_chunk *chunk)
{
	const struct model *model = reading->model;
	const uint64_t *correlation = xt_chunk_u64(chunk, XT_MEMORY_CORRELATION);
	const uint64_t *operation = xt_chunk_u64(chunk, XT_MEMORY_OPERATION);
	const uint64_t *address = xt_chunk_u64(chunk, XT_MEMORY_ADDRESS);
	const uint64_t *bytes = xt_chunk_u64(chunk, XT_MEMORY_BYTES);
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_MEMORY_TIME_NS);
	const uint64_t *device = xt_chunk_u64(chunk, XT_MEMORY_DEVICE);
	const uint64_t *kind = xt_chunk_u64(chunk, XT_MEMORY_KIND);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !reading->error; r++) {
		struct work work = {
			.correlation = unique_correlation(model, correlation[r], time_ns[r]),
			.start_ns = time_ns[r],
			.graph_node = address[r],
			.bytes = bytes[r],
			.stream = device[r] > UINT32_MAX ? ROOT_UNKNOWN : (uint32_t)device[r],
			.shape = label_index(kind[r], MEMORY_KINDS),
			.kind = operation[r] == XT_MEMORY_ALLOC ? WORK_ALLOC : WORK_FREE,
		};
		struct owner owner;

		if (operation[r] != XT_MEMORY_ALLOC && operation[r] != XT_MEMORY_FREE)
			continue;
		if (reading->run->selection && !event_filter_wants_time(reading, time_ns[r]))
			continue;
		reading->run->memory_untimed_count += !time_ns[r];
		owner_without_call(reading, &work, &owner);
		memory_add(&reading->memory, &work, &owner, &work.ticket);
		if (work.kind == WORK_ALLOC && correlate_work(reading->correlate, &work) < 0)
			reading->error = -ENOMEM;
	}
}

/* Passes ranges to exporters that show them. The model already has them. */
static void read_ranges(struct reading *reading, const struct xt_chunk *chunk)
{
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		for (uint32_t r = 0; sink->exporter->range && r < xt_chunk_rows(chunk); r++)
			if (sink->exporter->range(sink, &reading->process, chunk, r) < 0)
				reading->error = -ENOMEM;
	}
}

static void (*const read_by_kind[XT_KIND_COUNT])(struct reading *, const struct xt_chunk *) = {
	[XT_KIND_CALL] = read_calls, [XT_KIND_KERNEL] = read_work,   [XT_KIND_COPY] = read_work,
	[XT_KIND_SET] = read_work,   [XT_KIND_MEMORY] = read_memory, [XT_KIND_RANGE] = read_ranges,
};

static uint32_t wanted_kinds(void)
{
	uint32_t wanted = 0;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		wanted |= read_by_kind[kind] ? 1u << kind : 0;
	return wanted;
}

/* Adds the summary row for the memory of a pool. Returns 0 or -ENOMEM. */
static int add_memory_row(struct reading *reading, uint32_t pool)
{
	struct run *run = reading->run;
	const struct process *process = &reading->process;
	const struct memory_pool *sums = &reading->memory.pools[pool];
	char device[32];
	char *label;
	int length;

	if (!sums->alloc_count && !sums->free_count)
		return 0;
	if (grow(&run->memory, &run->memory_row_capacity, run->memory_row_count + 1,
		 sizeof(*run->memory)) < 0)
		return -ENOMEM;
	snprintf(device, sizeof(device),
		 pool == MEMORY_POOL_HOST	? "host"
		 : pool == MEMORY_POOLS_MAX - 1 ? "other devices"
						: "GPU%u",
		 pool);
	length = asprintf(&label, "%s%s%s", device, process->process_count > 1 ? " of " : "",
			  process->process_count > 1 ? process->label : "");
	if (length < 0)
		return -ENOMEM;
	run->memory[run->memory_row_count++] = (struct memory_row){
		.label = names_intern(&run->paths.names, label, (size_t)length),
		.pool = *sums,
		.peak_ns = (int64_t)(sums->peak_ns - (uint64_t)process->origin_ns),
	};
	free(label);
	return 0;
}

static int finish_memory(struct reading *reading)
{
	struct memory_counts *sums = &reading->run->memory_counts;
	const struct memory_counts *counts = &reading->memory.counts;
	int error;

	/* If only a part of the run is selected, the other half of a pair may be outside of it. */
	if (!reading->run->selection) {
		/* Memory that is freed may have been allocated when the log has no events. */
		if (!reading->model->stops.count && !model_is_cut(reading->model))
			sums->free_unmatched += counts->free_unmatched;
		sums->alloc_over += counts->alloc_over;
		sums->unowned += counts->unowned;
	}
	sums->late_count += counts->late_count;
	error = reading->memory.error;
	for (uint32_t pool = 0; pool < MEMORY_POOLS_MAX && !error; pool++)
		error = add_memory_row(reading, pool);
	return error;
}

static int finish_transfers(struct reading *reading)
{
	const struct model *model = reading->model;
	struct run *run = reading->run;
	struct names *names = &run->paths.names;
	int error = 0;

	for (size_t s = 0; s < model->copy_shapes.count && !error; s++)
		if (reading->copies[s].count)
			error = transfers_add_copies(&run->transfers, names,
						     &model->copy_shapes.rows[s],
						     &reading->copies[s]);
	for (uint32_t m = 0; m < MEMORY_KINDS && !error; m++)
		if (reading->memsets[m].count)
			error = transfers_add_memsets(&run->transfers, names, m,
						      &reading->memsets[m]);
	return error;
}

/*
 * Returns whether so many launches lack work that gaps may not be idle. If only a part of the run
 * is selected, the work may be outside of it.
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
	int error = reading->replays ? replays_finish(reading->replays) : 0;

	memory_finish(&reading->memory);
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
		error = error ? error : reading->timeline->error;
	}
	/* Counts the missing kernels of the whole log: they may belong to the selected part. */
	reading->kernel_missing_count =
		missing_count(&reading->missing, reading->model, &reading->damage, counts,
			      &run->launch_unclear_count);
	correlate_free(reading->correlate);
	timeline_free(reading->timeline);
	reading->correlate = NULL;
	reading->timeline = NULL;
	return error ? error : reading->error;
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

int reading_finish(struct reading *reading)
{
	const struct model *model = reading->model;
	struct run *run = reading->run;
	int error;

	run->nodes_cyclic_count += model->nodes.cyclic_count;
	run->pause_count += model->pauses.count;
	run->cut_count += model_is_cut(model);
	run->stop_count += model->stops.count;
	run->paused_ns += pauses_total_ns(&model->pauses, model->last_clock_ns);
	add_handoffs(run, model);
	add_rates(run, model);
	run->nodes_made_count += model->nodes.made_count;
	range_counts_add(&run->range_counts, &model->ranges.counts, model_is_cut(model));
	run->collectives.count += reading->collectives.count;
	run->collectives.gpu_ns += reading->collectives.gpu_ns;
	run->collectives.alone_ns += reading->collectives.alone_ns;
	error = finish_memory(reading);
	return error ? error : finish_transfers(reading);
}

/* Returns whether kernels are or may be lost. */
static bool lost_kernels(const struct model *model, const struct xt_damage *damage)
{
	return damage->truncated || !damage->closed || damage->chunks_damaged ||
	       damage->chunks_missing || model_account(model, "kernels.lost.write_failed") ||
	       (model_account(model, "kernels.lost.size") && !model_is_flight_recording(model)) ||
	       model_account(model, "kernels.lost.leaving");
}

static int begin(struct reading *reading)
{
	struct work_receiver receiver = {attribute_work, reading, reading->model->from_ns};
	struct nodes *nodes = &reading->model->nodes;
	struct memory_listener memory_listener = {reading_memory_changed, reading};
	struct timeline_listener timeline_listener = {reading_ran, reading};
	bool wants_exclusive = run_wants(reading->run, WEIGHT_GPU_EXCLUSIVE);
	bool wants_idle = run_wants(reading->run, WEIGHT_GPU_IDLE);

	reading->exports_calls = wants_idle || run_wants(reading->run, WEIGHT_CPU_WAIT);
	for (size_t e = 0; e < reading->sink_count; e++) {
		reading->exports_calls |= reading->sinks[e].exporter->call != NULL;
		reading->exports_work |= reading->sinks[e].exporter->work != NULL;
	}
	if (reading->run->wants_findings &&
	    callsites_init(&reading->callsites, reading->model, &reading->threads) < 0)
		return -ENOMEM;
	memory_init(&reading->memory, &reading->aggregate, &reading->model->stops, memory_listener);
	reading->has_stack = calloc(reading->model->stacks.count + 1, 1);
	for (uint32_t id = 1; reading->has_stack && id < reading->model->stacks.count; id++)
		reading->has_stack[id] = model_has_stack(reading->model, id);
	reading->copies = calloc(reading->model->copy_shapes.count, sizeof(*reading->copies));
	if (!reading->has_stack || !reading->copies ||
	    threads_init(&reading->threads, reading->model) < 0)
		return -ENOMEM;
	idle_paths_begin(&reading->idle_paths, reading->run->cpu_logs, reading->process.log,
			 reading->model, &reading->threads, &reading->aggregate);
	if (wants_exclusive || wants_idle) {
		reading->timeline = timeline_new(wants_exclusive, wants_idle, &reading->aggregate,
						 &reading->threads, &reading->model->pauses,
						 &reading->idle_paths, timeline_listener);
		if (!reading->timeline)
			return -ENOMEM;
		reading->timeline->is_damaged =
			lost_kernels(reading->model, &reading->model->damage);
	}
	if (nodes->conditional_count) {
		if (replays_new(&reading->replays, nodes, &reading->model->pauses, receiver) < 0)
			return -ENOMEM;
		receiver.attribute = attribute_work_with_id;
	}
	return correlate_new(&reading->correlate, NULL, receiver);
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

int reading_events(struct reading *reading, struct xt_reader *reader, bool has_helper,
		   struct progress *progress)
{
	const struct xt_chunk *chunk;
	uint64_t done_bytes, all_bytes;
	struct prefetch *prefetch = NULL;
	int error = begin(reading);

	if (!error) {
		prefetch = prefetch_open(reader, wanted_kinds(), has_helper);
		error = prefetch ? 0 : -ENOMEM;
	}
	if (error)
		return error;
	while (!reading->error && (chunk = prefetch_next(prefetch))) {
		enum xt_kind kind = xt_chunk_kind(chunk);

		if (!(model_row_kinds() & 1u << kind)) /* the model has counted the other kinds */
			reading->model->rows_read[kind] += xt_chunk_rows(chunk);
		if (reading->timeline && prefetch_damaged(prefetch))
			reading->timeline->is_damaged = true;
		read_by_kind[kind](reading, chunk);
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
	callsites_free(&reading->callsites);
	aggregate_free(&reading->aggregate);
	idle_paths_free(&reading->idle_paths);
	free(reading->copies);
	free(reading->has_stack);
}
