/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes the rows of a chunk to the join, and calls and ranges to whatever else looks at them.
 *
 * The loops over calls and over work run for every event. Work for only some outputs is in
 * separate functions, behind one condition.
 */
#include "merge/chunk_rows.h"

#include <errno.h>

#include "merge/sums/attribute.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/event_filter.h"

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

/*
 * Captured launches and launches of graphs without kernels have no kernel: do not expect one.
 * made_nodes: the call created nodes of a graph.
 */
static __attribute__((noinline)) void expect_no_kernel(struct reading *reading, struct launch *call,
						       bool made_nodes, uint32_t graph_exec)
{
	bool has_no_kernel = false;

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

/* Returns whether the call submits work that must appear in the log. */
static bool expects_work(const struct launch *call)
{
	return (call->flags & (LAUNCH_EXPECTED | LAUNCH_MEMORY)) == LAUNCH_EXPECTED;
}

/*
 * Passes a call to everything that looks at calls, and places it in its range and thread. Returns
 * whether the user selected it. is_left_out: the call is only here for later work.
 */
static __attribute__((noinline)) bool observe_call(struct reading *reading, struct launch *call,
						   uint64_t duration_ns, uint64_t result,
						   bool is_left_out)
{
	struct model *model = reading->model;
	uint64_t own_ns = duration_ns;

	if (model->ranges.thread_count && !call->range)
		call->range = model_range_at(
			model, &(struct range_call){call->thread, call->stack, call->enter_ns}, 0);
	if ((run_wants(reading->run, WEIGHT_GPU_IDLE) ||
	     run_wants(reading->run, WEIGHT_CPU_WAIT)) &&
	    threads_add_call(&reading->threads, call, call->enter_ns + duration_ns, &own_ns) < 0)
		reading->error = -ENOMEM;
	if (call->flags & LAUNCH_GRAPH)
		call->took_ns = call->duration_ns;
	if (reading->run->compares_ranks && model->has_collectives &&
	    rank_log_add_call(reading, call, duration_ns) < 0)
		reading->error = -ENOMEM;
	if (!result && expects_work(call))
		call->since_ns = threads_note_submission(&reading->threads, call);
	if (is_left_out || (reading->run->selection && !event_filter_wants_call(reading, call)))
		return false;
	if (reading->run->wants_findings)
		callsites_add_call(&reading->callsites, call, own_ns, result);
	if (reading->exports_calls)
		export_call(reading, call, duration_ns, own_ns, result);
	return true;
}

static inline void read_call(struct reading *reading, struct launch *call, uint64_t duration_ns,
			     uint64_t result, uint32_t graph_exec)
{
	struct model *model = reading->model;
	bool is_wanted = call->enter_ns >= model->from_ns;
	bool made_nodes;

	call->duration_ns = duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX;
	if (reading->observes_calls)
		is_wanted = observe_call(reading, call, duration_ns, result, !is_wanted);
	if (is_wanted)
		count_call(reading->run, call->flags, result != 0);
	if (result)
		call->flags &= (uint8_t)~LAUNCH_EXPECTED;
	made_nodes = nodes_note_call(&model->nodes, call->thread, call->enter_ns,
				     call->enter_ns + duration_ns, call->api);
	if ((made_nodes || call->flags & LAUNCH_GRAPH) && expects_work(call))
		expect_no_kernel(reading, call, made_nodes, graph_exec);
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

/* Returns NULL for a column of zeros, so that unused columns cost nothing. */
static const uint64_t *column_or_null(const struct xt_chunk *chunk, unsigned column)
{
	return xt_chunk_is_zero(chunk, column) ? NULL : xt_chunk_u64(chunk, column);
}

static void read_calls(struct reading *reading, const struct xt_chunk *chunk)
{
	const uint64_t *thread = xt_chunk_u64(chunk, XT_CALL_THREAD);
	const uint64_t *api = xt_chunk_u64(chunk, XT_CALL_API);
	const uint64_t *correlation = xt_chunk_u64(chunk, XT_CALL_CORRELATION);
	const uint64_t *stack = xt_chunk_u64(chunk, XT_CALL_STACK);
	const uint64_t *enter_ns = xt_chunk_u64(chunk, XT_CALL_ENTER_NS);
	const uint64_t *duration_ns = xt_chunk_u64(chunk, XT_CALL_DURATION_NS);
	const uint64_t *result = column_or_null(chunk, XT_CALL_RESULT);
	const uint64_t *one_in = column_or_null(chunk, XT_CALL_ONE_IN);
	const uint64_t *graph_exec = column_or_null(chunk, XT_CALL_GRAPH_EXEC);
	const uint64_t *autograd = column_or_null(chunk, XT_CALL_AUTOGRAD);
	const struct model *model = reading->process.model;

	uint32_t row_count = xt_chunk_rows(chunk);
	uint64_t last_api = row_count ? api[0] : 0;
	uint16_t place = model_api(model, last_api);
	uint8_t flags = class_flags[model->apis.rows[place].class];

	for (uint32_t r = 0; r < row_count && !reading->error; r++) {
		struct launch *call = correlate_reserve(reading->correlate);
		bool is_valid = has_valid_times(enter_ns[r], duration_ns[r]);

		if (!call) {
			reading->error = -ENOMEM;
			return;
		}
		if (api[r] != last_api) {
			last_api = api[r];
			place = model_api(model, last_api);
			flags = class_flags[model->apis.rows[place].class];
		}
		*call = (struct launch){
			.correlation = unique_correlation(model, correlation[r], enter_ns[r]),
			.enter_ns = enter_ns[r],
			.stack = narrow(stack[r]),
			.thread = narrow(thread[r]),
			.api = place,
			.flags = flags,
		};
		if (one_in && one_in[r] > 1 && call->flags)
			call->flags |= rate_flags(one_in[r]);
		if (autograd && autograd[r])
			join_backward(reading, chunk, r, call);
		reading->run->calls_invalid_count += !is_valid;
		read_call(reading, call, is_valid ? duration_ns[r] : 0, result ? result[r] : 0,
			  graph_exec ? narrow(graph_exec[r]) : 0);
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
	const uint64_t *graph_node = column_or_null(chunk, XT_KERNEL_GRAPH_NODE);
	const uint64_t *bytes = column_or_null(chunk, work_columns[kind].bytes_column);
	bool wants_collectives =
		kind == XT_KIND_KERNEL && (reading->timeline || reading->exports_work);
	uint32_t row_count = xt_chunk_rows(chunk);

	for (uint32_t r = 0; r < row_count && !reading->error; r++) {
		struct work work = {
			.correlation = unique_correlation(model, correlation[r], start_ns[r]),
			.start_ns = start_ns[r],
			.duration_ns = duration_ns[r],
			.graph_node = graph_node ? graph_node[r] : 0,
			.bytes = bytes ? bytes[r] : 0,
			.stream = narrow(stream[r]),
			.shape = narrow(shape[r]),
			.kind = work_columns[kind].kind,
		};
		if (wants_collectives && work.shape < model->shapes.count)
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

uint32_t chunk_row_kinds(void)
{
	uint32_t kinds = 0;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		kinds |= read_by_kind[kind] ? 1u << kind : 0;
	return kinds;
}

void chunk_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	read_by_kind[xt_chunk_kind(chunk)](reading, chunk);
}
