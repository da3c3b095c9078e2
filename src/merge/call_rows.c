/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes calls to the join, and to whatever else looks at calls.
 *
 * The loop runs for every call. Nearly all calls are plain: nothing but the join needs them. The
 * others take a slower path with the same result.
 */
#include "merge/call_rows.h"

#include "merge/row_blocks.h"
#include "merge/sums/attribute.h"
#include "merge/sums/event_filter.h"

/* Passes a call to findings and exporters. */
static void export_call(struct reading *reading, struct launch *call, uint64_t duration_ns,
			uint64_t own_ns, uint64_t result)
{
	if (reading->run->needs.weights >> WEIGHT_CPU_WAIT & 1 &&
	    threads_waits(&reading->threads, call->api))
		reading_add_wait(reading, call, own_ns);
	reading->exported_call_count += reading->exported_call_count < UINT32_MAX;
	call->number = reading->exported_call_count;
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->call)
			sink->exporter->call(sink, &reading->process, call, duration_ns, result);
	}
}

static void count_call(struct call_counts *counts, uint8_t flags, bool has_failed)
{
	if (flags & LAUNCH_TRANSFER) {
		counts->transfer_call_count++;
	} else if (flags && !(flags & LAUNCH_MEMORY)) {
		counts->launch_count++;
		counts->launch_failed_count += has_failed;
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

	if (!made_nodes && call->flags & LAUNCH_GRAPH)
		missing_note_graph_launch(&reading->missing, reading->model, graph_exec,
					  &has_no_kernel);
	if (!made_nodes && !has_no_kernel)
		return;
	call->flags &= (uint8_t)~LAUNCH_EXPECTED;
	if (reading->run->selection || call->flags & LAUNCH_TRANSFER ||
	    call->enter_ns < reading->model->from_ns)
		return;
	reading->counts.calls.launch_captured_count += made_nodes;
	reading->counts.calls.launch_kernelless_count += has_no_kernel;
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
	if (run_wants(reading->run, WEIGHT_GPU_IDLE) || run_wants(reading->run, WEIGHT_CPU_WAIT))
		threads_add_call(&reading->threads, call, call->enter_ns + duration_ns, &own_ns);
	if (reading->run->needs.ranks && model->has_collectives)
		rank_log_add_call(reading, call, duration_ns);
	if (!result && expects_work(call))
		call->since_ns = threads_note_submission(&reading->threads, call);
	if (is_left_out || (reading->run->selection && !event_filter_wants_call(reading, call)))
		return false;
	if (reading->run->needs.findings)
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

	if (reading->observes_calls)
		is_wanted = observe_call(reading, call, duration_ns, result, !is_wanted);
	if (is_wanted)
		count_call(&reading->counts.calls, call->flags, result != 0);
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

/* Rates beyond the largest are stored as the largest. */
static uint8_t rate_flags(uint64_t one_in)
{
	uint8_t shift = (uint8_t)(63 - __builtin_clzll(one_in));

	return (uint8_t)((shift < 7 ? shift : 7) << LAUNCH_RATE_BIT);
}

/* A block of calls. */
struct call_rows {
	const uint64_t *thread, *api, *correlation, *stack, *enter_ns, *duration_ns;
	const uint64_t *result, *one_in, *graph_exec, *autograd; /* NULL: all zeros */
	const uint64_t *sequence, *node_sequence;		 /* NULL without autograd */
	struct block_buffers buffers;
};

static void load_calls(const struct xt_chunk *chunk, uint32_t row, struct call_rows *rows)
{
	rows->thread = block_of(chunk, XT_CALL_THREAD, row, &rows->buffers);
	rows->api = block_of(chunk, XT_CALL_API, row, &rows->buffers);
	rows->correlation = block_of(chunk, XT_CALL_CORRELATION, row, &rows->buffers);
	rows->stack = block_of(chunk, XT_CALL_STACK, row, &rows->buffers);
	rows->enter_ns = block_of(chunk, XT_CALL_ENTER_NS, row, &rows->buffers);
	rows->duration_ns = block_of(chunk, XT_CALL_DURATION_NS, row, &rows->buffers);
	rows->result = block_or_null(chunk, XT_CALL_RESULT, row, &rows->buffers);
	rows->one_in = block_or_null(chunk, XT_CALL_ONE_IN, row, &rows->buffers);
	rows->graph_exec = block_or_null(chunk, XT_CALL_GRAPH_EXEC, row, &rows->buffers);
	rows->autograd = block_or_null(chunk, XT_CALL_AUTOGRAD, row, &rows->buffers);
	if (!rows->autograd)
		return;
	rows->sequence = block_of(chunk, XT_CALL_SEQUENCE, row, &rows->buffers);
	rows->node_sequence = block_of(chunk, XT_CALL_NODE_SEQUENCE, row, &rows->buffers);
}

/* Sets the stack and the range of a call inside PyTorch. */
static __attribute__((noinline)) void join_backward(struct reading *reading,
						    const struct call_rows *rows, uint32_t r,
						    struct launch *call)
{
	const struct autograd_call autograd = {
		.stack = call->stack,
		.state = narrow_id(rows->autograd[r]),
		.sequence = rows->sequence[r],
		.node_sequence = rows->node_sequence[r],
		.is_sampled = rows->one_in && rows->one_in[r] > 1,
	};
	struct model *model = reading->model;

	call->range = model_range_at(
		model, &(struct range_call){call->thread, call->stack, call->enter_ns},
		autograd.state);
	if (reading->run->settings->frames.backward != BACKWARD_ENGINE)
		autograd_join(&model->autograd, &autograd, &call->stack);
}

/* The API of the latest call. Nearly always, the next call has the same one. */
struct call_api {
	uint64_t id;
	uint16_t place;
	uint8_t flags;
	bool is_launch, is_transfer;
};

static void set_api(const struct model *model, uint64_t id, struct call_api *api)
{
	uint16_t place = model_api(model, id);
	uint8_t flags = class_flags[model->apis.rows[place].class];

	*api = (struct call_api){
		.id = id,
		.place = place,
		.flags = flags,
		.is_launch = flags && !(flags & (LAUNCH_TRANSFER | LAUNCH_MEMORY)),
		.is_transfer = flags & LAUNCH_TRANSFER,
	};
}

static inline void fill_call(const struct model *model, const struct call_rows *rows, uint32_t r,
			     const struct call_api *api, struct launch *call)
{
	uint64_t duration_ns = rows->duration_ns[r];

	*call = (struct launch){
		.correlation = unique_correlation(model, rows->correlation[r], rows->enter_ns[r]),
		.enter_ns = rows->enter_ns[r],
		.stack = narrow_id(rows->stack[r]),
		.thread = narrow_id(rows->thread[r]),
		.duration_ns = duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX,
		.api = api->place,
		.flags = api->flags,
	};
}

static inline void read_call_row(struct reading *reading, const struct call_rows *rows, uint32_t r,
				 const struct call_api *api, struct launch *call)
{
	bool is_valid = has_valid_times(rows->enter_ns[r], rows->duration_ns[r]);

	fill_call(reading->model, rows, r, api, call);
	if (!is_valid)
		call->duration_ns = 0;
	if (rows->one_in && rows->one_in[r] > 1 && call->flags)
		call->flags |= rate_flags(rows->one_in[r]);
	if (rows->autograd && rows->autograd[r])
		join_backward(reading, rows, r, call);
	reading->counts.calls.calls_invalid_count += !is_valid;
	read_call(reading, call, is_valid ? rows->duration_ns[r] : 0,
		  rows->result ? rows->result[r] : 0,
		  rows->graph_exec ? narrow_id(rows->graph_exec[r]) : 0);
}

/* Returns whether calls of the block only need to be joined, counted and checked for graphs. */
static bool are_plain(const struct reading *reading, const struct call_rows *rows)
{
	return !reading->observes_calls && !rows->result && !rows->one_in && !rows->autograd;
}

/* Calls that were counted, but not yet in the run. */
struct call_sums {
	uint64_t launch_count, transfer_count;
};

/*
 * Does the same as read_call_row() for a call in a block with are_plain(). Returns false, without
 * any effect, if the call needs read_call_row().
 */
static inline bool read_plain_call(struct reading *reading, const struct call_rows *rows,
				   uint32_t r, const struct call_api *api, struct launch *call,
				   struct call_sums *sums)
{
	const struct model *model = reading->model;
	uint64_t enter_ns = rows->enter_ns[r], exit_ns = enter_ns + rows->duration_ns[r];

	if (!has_valid_times(enter_ns, rows->duration_ns[r]) || api->flags & LAUNCH_GRAPH ||
	    nodes_may_be_made(&model->nodes, enter_ns, exit_ns))
		return false;
	fill_call(model, rows, r, api, call);
	if (enter_ns >= model->from_ns) {
		sums->launch_count += api->is_launch;
		sums->transfer_count += api->is_transfer;
	}
	correlate_commit(reading->correlate);
	return true;
}

static void read_call_rows(struct reading *reading, const struct call_rows *rows,
			   uint32_t row_count)
{
	bool is_plain = are_plain(reading, rows);
	struct call_sums sums = {0};
	struct call_api api;

	set_api(reading->model, rows->api[0], &api);
	for (uint32_t r = 0; r < row_count; r++) {
		struct launch *call = correlate_reserve(reading->correlate);

		if (rows->api[r] != api.id)
			set_api(reading->model, rows->api[r], &api);
		if (!is_plain || !read_plain_call(reading, rows, r, &api, call, &sums))
			read_call_row(reading, rows, r, &api, call);
	}
	reading->counts.calls.launch_count += sums.launch_count;
	reading->counts.calls.transfer_call_count += sums.transfer_count;
}

void call_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	struct call_rows rows;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r += XT_BLOCK_ROWS) {
		load_calls(chunk, r, &rows);
		read_call_rows(reading, &rows, block_rows(chunk, r));
	}
}
