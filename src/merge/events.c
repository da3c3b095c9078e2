/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins calls and work, adds them up and passes them to the exporters.
 *
 * The path of one correlation id:
 * 1. chunk_rows_read() passes the rows of the call and of its work on.
 * 2. correlate.c joins them and calls attribute_work() in sums/reading.c. Work that the GPU
 *   itself launched in a graph has no id: replays_join() finds its call instead.
 * 3. attribute_work() finds the owner of the work and adds it to sums/aggregate.c.
 * 4. After the last event, sums/build_tree.c turns owners into call paths.
 * 5. An exporter, such as export/folded.c, writes the paths.
 *
 * A chunk is read in blocks of rows, which stay in the nearest cache. Loops run for every call and
 * every kernel. Nearly all calls are plain: nothing but the join needs them. If only the sums by
 * path are wanted, nearly all kernels are plain, too: such a kernel belongs to the newest call with
 * its hash, and to the sum that came next the last time. The others take a slower path with the
 * same result.
 */
#include "merge/events.h"

#include "base/memory.h"
#include "log/read/rows.h"
#include "merge/read/model.h"
#include "merge/read/prefetch.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"

#define BLIND_PART	10 /* idle time is unknown if one launch in so many has no work */
#define SMALL_LOG_BYTES (256u << 10)

static inline uint32_t narrow_id(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
}

/* Returns false if the start is 0 or the end is before the start. */
static inline bool has_valid_times(uint64_t start_ns, uint64_t duration_ns)
{
	return start_ns && (start_ns | duration_ns | (start_ns + duration_ns)) <= INT64_MAX;
}

/* Makes a correlation id unique in the log. Keeps 0, which means an unknown call. */
static inline uint64_t unique_correlation(const struct model *model, uint64_t correlation,
					  uint64_t time_ns)
{
	return correlation ? correlation + model_numbering(model, time_ns) : 0;
}

/*
 * A block of rows: XT_BLOCK_ROWS values of each column, and the room to unpack them. Loading a
 * column of zeros costs nothing.
 */
#define BLOCK_COLUMN(K, C, column, number, encoding) const uint64_t *column;
#define LOAD_COLUMN(K, C, column, number, encoding)                                                \
	block->column = xt_chunk_block(chunk, number, row, block->room[number]);
#define DEFINE_BLOCK(K, kind)                                                                      \
	struct kind##_block {                                                                      \
		XT_##K##_COLUMNS(BLOCK_COLUMN,                                                     \
				 K) uint64_t room[XT_TABLE_COLUMNS_MAX][XT_BLOCK_ROWS];            \
	};                                                                                         \
	static void load_##kind(const struct xt_chunk *chunk, uint32_t row,                        \
				struct kind##_block *block)                                        \
	{                                                                                          \
		XT_##K##_COLUMNS(LOAD_COLUMN, K)                                                   \
	}
DEFINE_BLOCK(CALL, call)
DEFINE_BLOCK(COPY, work) /* kernels lack its bytes; its shape is the memory kind of a memset */
DEFINE_BLOCK(MEMORY, memory)

static inline uint32_t block_rows(const struct xt_chunk *chunk, uint32_t row)
{
	uint32_t left = xt_chunk_rows(chunk) - row;

	return left < XT_BLOCK_ROWS ? left : XT_BLOCK_ROWS;
}

/* Passes a call to findings and exporters. */
static void export_call(struct reading *reading, struct launch *call, uint64_t duration_ns,
			uint64_t own_ns, uint64_t result)
{
	if (reading->run->needs.weights >> WEIGHT_CPU_WAIT & 1 &&
	    threads_waits(&reading->gaps.threads, call->api))
		reading_add_wait(reading, call, own_ns);
	reading->plan.exported_call_count += reading->plan.exported_call_count < UINT32_MAX;
	call->number = reading->plan.exported_call_count;
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->on.call)
			sink->exporter->on.call(sink, &reading->process, call, duration_ns, result);
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
		missing_note_graph_launch(&reading->join.missing, reading->model, graph_exec,
					  &has_no_kernel);
	if (!made_nodes && !has_no_kernel)
		return;
	call->flags &= (uint8_t)~LAUNCH_EXPECTED;
	if (run_is_part(reading->run) || call->flags & LAUNCH_TRANSFER ||
	    call->enter_ns < reading->model->times.from_ns)
		return;
	reading->sums.counts.calls.launch_captured_count += made_nodes;
	reading->sums.counts.calls.launch_kernelless_count += has_no_kernel;
}

/* Returns whether the call submits work that must appear in the log. */
static bool expects_work(const struct launch *call)
{
	return (call->flags & (LAUNCH_EXPECTED | LAUNCH_MEMORY)) == LAUNCH_EXPECTED;
}

/* Idle time in a wait, an allocation or a load is of that call, which --range may leave out. */
static void add_to_thread(struct reading *reading, const struct launch *call, uint64_t exit_ns,
			  uint64_t *own_ns)
{
	struct threads *threads = &reading->gaps.threads;
	enum thread_state state = threads->states[call->api];
	struct owner owner = {0};

	if (state < THREAD_IN_OWN_CODE && !reading->run->settings->wanted.patterns[PATTERN_RANGE])
		owner_of_call(reading, call, &owner);
	threads_add_call(threads, call, exit_ns, owner.stack ? &owner : NULL, own_ns);
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
		add_to_thread(reading, call, call->enter_ns + duration_ns, &own_ns);
	if (reading->run->needs.ranks && model->has_collectives)
		rank_log_add_call(reading, call, duration_ns);
	if (!result && expects_work(call))
		call->since_ns = threads_note_submission(&reading->gaps.threads, call);
	if (is_left_out || (reading->run->selection && !event_filter_wants_call(reading, call)))
		return false;
	if (reading->run->needs.findings && reading_is_steady(reading, call->enter_ns)) {
		struct launch steady = *call;

		callsites_add_call(&reading->sums.steady, &steady, own_ns, result);
	}
	if (reading->run->needs.findings)
		callsites_add_call(&reading->sums.callsites, call, own_ns, result);
	if (reading->plan.exports_calls)
		export_call(reading, call, duration_ns, own_ns, result);
	return true;
}

static inline void read_call(struct reading *reading, struct launch *call, uint64_t duration_ns,
			     uint64_t result, uint32_t graph_exec)
{
	struct model *model = reading->model;
	bool is_wanted = call->enter_ns >= model->times.from_ns;
	bool made_nodes;

	if (reading->plan.observes_calls)
		is_wanted = observe_call(reading, call, duration_ns, result, !is_wanted);
	if (is_wanted)
		count_call(&reading->sums.counts.calls, call->flags, result != 0);
	if (result)
		call->flags &= (uint8_t)~LAUNCH_EXPECTED;
	made_nodes = nodes_note_call(&model->nodes, call->thread, call->enter_ns,
				     call->enter_ns + duration_ns, call->api);
	if ((made_nodes || call->flags & LAUNCH_GRAPH) && expects_work(call))
		expect_no_kernel(reading, call, made_nodes, graph_exec);
	correlate_commit(reading->join.correlate);
}

/* Flags for the join, by class of call. */
static const uint8_t class_flags[XT_API_CLASSES] = {
	[XT_API_LAUNCH] = LAUNCH_EXPECTED,
	[XT_API_GRAPH_LAUNCH] = LAUNCH_EXPECTED | LAUNCH_GRAPH,
	[XT_API_COPY] = LAUNCH_EXPECTED | LAUNCH_TRANSFER,
	[XT_API_SET] = LAUNCH_EXPECTED | LAUNCH_TRANSFER,
	[XT_API_ALLOC] = LAUNCH_EXPECTED | LAUNCH_MEMORY,
};

/* Sets the stack and the range of a call inside PyTorch. */
static __attribute__((noinline)) void join_backward(struct reading *reading,
						    const struct call_block *rows, uint32_t r,
						    struct launch *call)
{
	const struct autograd_call autograd = {
		.stack = call->stack,
		.state = narrow_id(rows->autograd[r]),
		.sequence = rows->sequence[r],
		.node_sequence = rows->node_sequence[r],
		.is_sampled = rows->one_in[r] > 1,
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

static inline void fill_call(const struct model *model, const struct call_block *rows, uint32_t r,
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

static inline void read_call_row(struct reading *reading, const struct call_block *rows, uint32_t r,
				 const struct call_api *api, struct launch *call)
{
	bool is_valid = has_valid_times(rows->enter_ns[r], rows->duration_ns[r]);

	fill_call(reading->model, rows, r, api, call);
	if (!is_valid)
		call->duration_ns = 0;
	if (rows->one_in[r] > 1 && call->flags && !call->stack)
		call->flags |= LAUNCH_UNSAMPLED;
	if (rows->autograd[r])
		join_backward(reading, rows, r, call);
	reading->sums.counts.calls.calls_invalid_count += !is_valid;
	read_call(reading, call, is_valid ? rows->duration_ns[r] : 0, rows->result[r],
		  narrow_id(rows->graph_exec[r]));
}

/* Returns whether calls of the chunk only need to be joined, counted and checked for graphs. */
static bool are_plain(const struct reading *reading, const struct xt_chunk *chunk)
{
	return !reading->plan.observes_calls && xt_chunk_is_zero(chunk, XT_CALL_RESULT) &&
	       xt_chunk_is_zero(chunk, XT_CALL_ONE_IN) && xt_chunk_is_zero(chunk, XT_CALL_AUTOGRAD);
}

/* Calls that were counted, but not yet in the run. */
struct call_sums {
	uint64_t launch_count, transfer_count;
};

/*
 * Does the same as read_call_row() for a call in a block with are_plain(). Returns false, without
 * any effect, if the call needs read_call_row().
 */
static inline bool read_plain_call(struct reading *reading, const struct call_block *rows,
				   uint32_t r, const struct call_api *api, struct launch *call,
				   struct call_sums *sums)
{
	const struct model *model = reading->model;
	uint64_t enter_ns = rows->enter_ns[r], exit_ns = enter_ns + rows->duration_ns[r];

	if (!has_valid_times(enter_ns, rows->duration_ns[r]) || api->flags & LAUNCH_GRAPH ||
	    nodes_may_be_made(&model->nodes, enter_ns, exit_ns))
		return false;
	fill_call(model, rows, r, api, call);
	if (enter_ns >= model->times.from_ns) {
		sums->launch_count += api->is_launch;
		sums->transfer_count += api->is_transfer;
	}
	correlate_commit(reading->join.correlate);
	return true;
}

static void read_call_rows(struct reading *reading, const struct call_block *rows,
			   uint32_t row_count, bool is_plain)
{
	struct call_sums sums = {0};
	struct call_api api;

	set_api(reading->model, rows->api[0], &api);
	for (uint32_t r = 0; r < row_count; r++) {
		struct launch *call = correlate_reserve(reading->join.correlate);

		if (rows->api[r] != api.id)
			set_api(reading->model, rows->api[r], &api);
		if (!is_plain || !read_plain_call(reading, rows, r, &api, call, &sums))
			read_call_row(reading, rows, r, &api, call);
	}
	reading->sums.counts.calls.launch_count += sums.launch_count;
	reading->sums.counts.calls.transfer_call_count += sums.transfer_count;
}

/* Reads a chunk of calls. */
static void call_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	bool is_plain = are_plain(reading, chunk);
	struct call_block rows;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r += XT_BLOCK_ROWS) {
		load_call(chunk, r, &rows);
		read_call_rows(reading, &rows, block_rows(chunk, r), is_plain);
	}
}

static const uint8_t kinds_of_work[XT_KIND_COUNT] = {
	[XT_KIND_KERNEL] = WORK_KERNEL,
	[XT_KIND_COPY] = WORK_COPY,
	[XT_KIND_SET] = WORK_MEMSET,
};

/* The weight of work may depend on other work, so it is computed in time order. */
static void add_to_timeline(struct reading *reading, struct work *work)
{
	struct owner owner;

	owner_without_call(reading, work, &owner);
	timeline_add(reading->gaps.timeline, model_device(reading->model, work->stream), work,
		     &owner, &work->ticket);
}

/* Joins one row and passes it to everything that looks at work. */
static __attribute__((noinline)) void read_work_row(struct reading *reading, enum xt_kind kind,
						    const struct work_block *rows, uint32_t r)
{
	const struct model *model = reading->model;
	bool is_kernel = kind == XT_KIND_KERNEL;
	bool wants_collectives =
		is_kernel && (reading->gaps.timeline || reading->plan.exports_work);
	struct work work = {
		.correlation = unique_correlation(model, rows->correlation[r], rows->start_ns[r]),
		.start_ns = rows->start_ns[r],
		.duration_ns = rows->duration_ns[r],
		.graph_node = rows->graph_node[r],
		.bytes = rows->bytes[r],
		.stream = narrow_id(rows->stream[r]),
		.shape = narrow_id(rows->shape[r]),
		.kind = kinds_of_work[kind],
	};

	if (wants_collectives && work.shape < model->shapes.count)
		work.is_collective = model->shapes.rows[work.shape].is_collective;
	if (!has_valid_times(work.start_ns, work.duration_ns)) {
		reading->sums.counts.work.work_invalid_count++;
		reading->join.kernel_invalid_count += is_kernel;
		return;
	}
	if (is_kernel && work.graph_node && work.correlation && !work_is_whole_graph(&work))
		missing_note_graph_kernel(&reading->join.missing, model, work.graph_node);
	if (reading->gaps.timeline)
		add_to_timeline(reading, &work);
	if (reading->join.replays && work_is_by_device(&work))
		replays_join(reading->join.replays, &work);
	else
		correlate_work(reading->join.correlate, &work);
}

/*
 * Joins and adds a kernel outside graphs, if its sum is the expected one. Returns false, without
 * any effect, if read_work_row() has to do it.
 */
static inline bool read_plain_kernel(struct reading *reading, const struct work_block *rows,
				     uint32_t r, struct plain_sums *sums)
{
	uint64_t start_ns = rows->start_ns[r], duration_ns = rows->duration_ns[r];
	struct launch *launch;

	if (rows->graph_node[r] || !has_valid_times(start_ns, duration_ns))
		return false;
	launch = correlate_newest(
		reading->join.correlate,
		unique_correlation(reading->model, rows->correlation[r], start_ns), start_ns);
	if (!launch || !add_plainly(reading, launch, narrow_id(rows->shape[r]), duration_ns, sums))
		return false;
	launch->flags |= LAUNCH_MATCHED;
	return true;
}

/* Reads a chunk of kernels, copies or memsets. */
static void work_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	bool is_plain = reading->plan.sums_plainly && xt_chunk_kind(chunk) == XT_KIND_KERNEL;
	struct plain_sums sums = {0};
	struct work_block rows;

	for (uint32_t from = 0; from < xt_chunk_rows(chunk); from += XT_BLOCK_ROWS) {
		uint32_t row_count = block_rows(chunk, from);

		load_work(chunk, from, &rows);
		for (uint32_t r = 0; r < row_count; r++)
			if (!is_plain || !read_plain_kernel(reading, &rows, r, &sums))
				read_work_row(reading, xt_chunk_kind(chunk), &rows, r);
	}
	reading->join.correlate->counts.work_joined += sums.count;
	reading_add_plain_sums(reading, &sums);
}

static void read_memory_row(struct reading *reading, const struct memory_block *rows, uint32_t r)
{
	uint64_t operation = rows->operation[r], device = rows->device[r];
	struct work work = {
		.correlation =
			unique_correlation(reading->model, rows->correlation[r], rows->time_ns[r]),
		.start_ns = rows->time_ns[r],
		.graph_node = rows->address[r],
		.bytes = rows->bytes[r],
		.stream = device > UINT32_MAX ? ROOT_UNKNOWN : (uint32_t)device,
		.shape = label_index(rows->kind[r], MEMORY_KINDS),
		.kind = operation == XT_MEMORY_ALLOC ? WORK_ALLOC : WORK_FREE,
	};
	struct owner owner;

	if (operation != XT_MEMORY_ALLOC && operation != XT_MEMORY_FREE)
		return;
	if (reading->run->selection && !event_filter_wants_time(reading, work.start_ns)) {
		if (work.start_ns > reading->sums.memory.skipped_ns)
			reading->sums.memory.skipped_ns = work.start_ns;
		return;
	}
	reading->sums.counts.calls.memory_untimed_count += !work.start_ns;
	owner_without_call(reading, &work, &owner);
	memory_add(&reading->sums.memory, &work, &owner, &work.ticket);
	if (work.kind == WORK_ALLOC)
		correlate_work(reading->join.correlate, &work);
}

static void read_memory(struct reading *reading, const struct xt_chunk *chunk)
{
	struct memory_block rows;

	for (uint32_t from = 0; from < xt_chunk_rows(chunk); from += XT_BLOCK_ROWS) {
		load_memory(chunk, from, &rows);
		for (uint32_t r = 0; r < block_rows(chunk, from); r++)
			read_memory_row(reading, &rows, r);
	}
}

/* Passes ranges to exporters that show them. The model already has them. */
static void read_ranges(struct reading *reading, const struct xt_chunk *chunk)
{
	const struct xt_columns_range columns = xt_columns_range(chunk);

	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		for (uint32_t r = 0; sink->exporter->on.range && r < xt_chunk_rows(chunk); r++) {
			const struct xt_row_range row = xt_read_range(&columns, r);

			sink->exporter->on.range(sink, &reading->process, &row);
		}
	}
}

static const struct {
	void (*read)(struct reading *reading, const struct xt_chunk *chunk);
	bool is_packed; /* read with xt_chunk_block() only */
} kinds[XT_KIND_COUNT] = {
	[XT_KIND_CALL] = {call_rows_read, true}, [XT_KIND_KERNEL] = {work_rows_read, true},
	[XT_KIND_COPY] = {work_rows_read, true}, [XT_KIND_SET] = {work_rows_read, true},
	[XT_KIND_MEMORY] = {read_memory, true},	 [XT_KIND_RANGE] = {read_ranges, false},
};

/* Reads all rows of a chunk of row_kinds(). */
static void chunk_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	kinds[xt_chunk_kind(chunk)].read(reading, chunk);
}

/* Returns the kinds of chunks that are read, or that may be packed, as bits 1 << enum xt_kind. */
static uint32_t row_kinds(bool packed)
{
	uint32_t bits = 0;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		if (packed ? kinds[kind].is_packed : kinds[kind].read != NULL)
			bits |= 1u << kind;
	return bits;
}

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

	return !run_is_part(run) && alone > (alone + counts->work_joined) / BLIND_PART;
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
	if (!run_is_part(run)) {
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
	bool has_resumed = model->pauses.count && model->pauses.list[0].until_ns != UINT64_MAX;

	return (has_resumed || *model_meta(model, "process.attached")) && !model_is_cut(model) &&
	       !run_is_part(run);
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

static void events_begin(struct reading *reading)
{
	struct work_receiver receiver = {attribute_work, reading, reading->model->times.from_ns};
	struct memory_listener memory_listener = {reading_memory_changed, reading};
	struct timeline_listener timeline_listener = {reading_ran, reading_idle_moved, reading};
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
	if (reading->run->needs.findings && reading->plan.steady_ns)
		callsites_init(&reading->sums.steady, reading->model, &reading->gaps.threads);
	memory_init(&reading->sums.memory, &reading->aggregate, &reading->model->stops,
		    memory_listener);
	reading->sums.copies =
		xt_calloc(reading->model->copy_shapes.count, sizeof(*reading->sums.copies));
	reading_find_stacks(reading);
	threads_init(&reading->gaps.threads, reading->model);
	idle_paths_begin(&reading->gaps.idle_paths, reading->run->cpu->logs, reading->process.log,
			 reading->model, &reading->gaps.threads, &reading->aggregate);
	if (wants_exclusive || wants_idle) {
		reading->gaps.timeline = timeline_new(
			wants_exclusive, wants_idle, &reading->aggregate, &reading->gaps.threads,
			&reading->model->pauses, &reading->gaps.idle_paths, timeline_listener);
		reading->gaps.timeline->is_damaged =
			lost_kernels(reading->model, &reading->model->damage);
	}
	if (reading->model->nodes.conditional.count) {
		replays_new(&reading->join.replays, &reading->model->nodes, &reading->model->pauses,
			    receiver);
		receiver.attribute = attribute_work_with_id;
	}
	reading->plan.sums_plainly = !reading->gaps.timeline && !reading->run->selection &&
				     !reading->run->needs.iterations &&
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

	events_begin(reading);
	prefetch = prefetch_open(reader, row_kinds(false), row_kinds(true),
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
	if (reading->damage.lacks_memory)
		xt_out_of_memory(0);
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
	callsites_free(&reading->sums.steady);
	aggregate_free(&reading->aggregate);
	idle_paths_free(&reading->gaps.idle_paths);
	rank_log_free(&reading->sums.rank_log);
	iterations_free(&reading->plan.iterations);
	free_all(reading->sums.copies, reading->join.has_stack);
}
