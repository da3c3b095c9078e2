/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/tracks.h"

#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"
#include "merge/sums/exporter.h"
#include "merge/sums/memory.h"
#include "merge/tracks/track_names.h"

#define CALL_ARGS_MAX  2
#define WORK_ARGS_MAX  4
#define LABEL_ARGS_MAX 6

/* State of counters, of the current log. */
struct track_counters {
	struct track *memory[MEMORY_POOLS_MAX];
};

void *tracks_begin(struct sink *sink, const struct track_writer *writer, size_t state_bytes)
{
	struct tracks *t = xt_calloc(1, state_bytes);

	t->writer = writer;
	t->next_number = TRACK_NUMBERS_FIRST;
	names_init(&t->texts);
	sink->state = t;
	return t;
}

static void end_log(struct tracks *t)
{
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		for (size_t i = 0; i < t->label_counts[kind]; i++) {
			free(t->labels[kind][i].args);
			free(t->labels[kind][i].text);
		}
		free(t->labels[kind]);
		t->label_counts[kind] = 0;
		t->labels[kind] = NULL;
	}
	free(t->counters);
	t->counters = NULL;
	track_ranges_free(t);
	track_samples_free(t);
	tracks_end_log(t);
}

void tracks_free(struct sink *sink)
{
	struct tracks *t = sink->state;

	if (!t)
		return;
	end_log(t);
	tracks_free_all(t);
	names_free(&t->texts);
	free(t);
	sink->state = NULL;
}

void tracks_process(struct sink *sink, const struct process *process)
{
	struct tracks *t = sink->state;

	end_log(t);
	t->sink = sink;
	tracks_begin_log(t, process);
	t->counters = xt_calloc(1, sizeof(*t->counters));
	t->label_counts[WORK_KERNEL] = process->model->shapes.count;
	t->label_counts[WORK_COPY] = process->model->copy_shapes.count;
	t->label_counts[WORK_MEMSET] = MEMORY_KINDS;
	for (int kind = 0; kind < WORK_KINDS; kind++)
		t->labels[kind] = xt_calloc(t->label_counts[kind], sizeof(*t->labels[kind]));
}

void tracks_process_end(struct sink *sink, const struct process *process)
{
	if (process->cpu)
		track_samples_end(sink->state);
	else
		track_ranges_end(sink->state);
}

/* Returns the number of the flow from a call to its work; 0 if no work is expected. */
static uint64_t flow_of(const struct process *process, const struct launch *call)
{
	if (!(call->flags & LAUNCH_EXPECTED) || call->flags & LAUNCH_MEMORY)
		return 0;
	return (process->index + 1) << 48 ^ call->correlation;
}

static void put_call(struct tracks *t, const struct launch *call, uint64_t duration_ns,
		     uint64_t result)
{
	struct track *track = tracks_thread(t, call->thread);
	uint32_t name = frames_api_name(t->process->frames, call->stack, call->api);
	struct track_arg args[CALL_ARGS_MAX];
	struct track_span span = {
		.track = track,
		.start_ns = call->enter_ns,
		.duration_ns = duration_ns,
		.args = args,
		.flow = flow_of(t->process, call),
		.name = name,
		.stack = call->stack,
		.category = CATEGORY_API,
	};

	if (!t->writer->is_compact)
		arg_number(&args[span.arg_count++], ARG_CORRELATION, call->correlation);
	if (result)
		arg_number(&args[span.arg_count++], ARG_ERROR, result);
	t->writer->span(t, &span);
}

void tracks_call(struct sink *sink, const struct process *process, const struct launch *call,
		 uint64_t duration_ns, uint64_t result)
{
	struct tracks *t = sink->state;

	(void)process;
	if (t->writer->call)
		return t->writer->call(t, call, duration_ns, result);
	put_call(t, call, duration_ns, result);
}

static uint8_t kernel_args(struct tracks *t, uint32_t id, const struct track_label *label,
			   struct track_arg args[LABEL_ARGS_MAX])
{
	const struct shape *shape = &t->process->model->shapes.rows[id];
	struct demangle_cache *names = t->process->names;
	const uint32_t *grid = shape->grid, *block = shape->block;
	uint8_t count = 0;
	uint32_t full;

	if (t->writer->is_compact) {
		arg_interned(
			t, &args[0], ARG_LAUNCH,
			xt_asprintf(
				"grid %ux%ux%u, block %ux%ux%u, %u registers, %llu + %llu bytes "
				"shared",
				grid[0], grid[1], grid[2], block[0], block[1], block[2],
				shape->registers, (unsigned long long)shape->static_shared_bytes,
				(unsigned long long)shape->dynamic_shared_bytes));
		return 1;
	}
	full = demangle(names, model_kernel_name(t->process->model, id), DEMANGLE_FULL);
	/* The name may be shortened. */
	if (full != label->name)
		arg_name(&args[count++], ARG_FUNCTION, full);
	args[count++] = (struct track_arg){
		.key = ARG_GRID, .type = ARG_SIZES, .sizes = {grid[0], grid[1], grid[2]}};
	args[count++] = (struct track_arg){
		.key = ARG_BLOCK, .type = ARG_SIZES, .sizes = {block[0], block[1], block[2]}};
	arg_number(&args[count++], ARG_REGISTERS, shape->registers);
	arg_number(&args[count++], ARG_STATIC_SHARED, shape->static_shared_bytes);
	arg_number(&args[count++], ARG_DYNAMIC_SHARED, shape->dynamic_shared_bytes);
	return count;
}

static uint8_t copy_args(struct tracks *t, uint32_t id, struct track_arg args[LABEL_ARGS_MAX])
{
	const struct copy_shape *shape = &t->process->model->copy_shapes.rows[id];
	bool is_peer = shape->from_device && shape->to_device;
	uint32_t from = shape->from_device - 1, to = shape->to_device - 1;
	const char *source = memory_kind_label(shape->source);
	const char *destination = memory_kind_label(shape->destination);
	const char *how = shape->is_async ? "asynchronous" : "synchronous";

	if (t->writer->is_compact) {
		arg_interned(t, &args[0], ARG_COPY,
			     is_peer ? xt_asprintf("%s to %s, %s, GPU %u to GPU %u", source,
						   destination, how, from, to)
				     : xt_asprintf("%s to %s, %s", source, destination, how));
		return 1;
	}
	arg_text(&args[0], ARG_SOURCE, source);
	arg_text(&args[1], ARG_DESTINATION, destination);
	args[2] = (struct track_arg){
		.key = ARG_ASYNCHRONOUS, .type = ARG_BOOL, .number = shape->is_async};
	arg_number(&args[3], ARG_FROM_DEVICE, from);
	arg_number(&args[4], ARG_TO_DEVICE, to);
	return is_peer ? 5 : 3;
}

/* Returns what the work shares with other work of its shape, made on first use. */
static struct track_label *label_of(struct tracks *t, const struct work *work)
{
	uint32_t id = work->shape < t->label_counts[work->kind] ? work->shape : 0;
	struct track_label *label = &t->labels[work->kind][id];
	const char *memory;

	if (label->args)
		return label;
	label->name = track_work_name(t->process, work->kind, id);
	label->args = xt_calloc(LABEL_ARGS_MAX, sizeof(*label->args));
	if (work->kind == WORK_KERNEL) {
		label->arg_count = kernel_args(t, id, label, label->args);
	} else if (work->kind == WORK_COPY) {
		label->arg_count = copy_args(t, id, label->args);
	} else {
		memory = memory_kind_label(id);
		if (t->writer->is_compact)
			arg_interned(t, &label->args[0], ARG_COPY, xt_strdup(memory));
		else
			arg_text(&label->args[0], ARG_MEMORY, memory);
		label->arg_count = 1;
	}
	return label;
}

static uint8_t work_args(const struct tracks *t, const struct work *work,
			 struct track_arg args[WORK_ARGS_MAX])
{
	bool is_full = !t->writer->is_compact;
	uint8_t count = 0;

	if (is_full)
		arg_number(&args[count++], ARG_CORRELATION, work->correlation);
	if (is_full && work->graph_node)
		arg_number(&args[count++], ARG_GRAPH_NODE, work->graph_node);
	if (work->kind == WORK_KERNEL)
		return count;
	arg_number(&args[count++], ARG_BYTES, work->bytes);
	if (!is_full || !work->duration_ns)
		return count;
	/* Bytes per nanosecond are gigabytes per second. */
	arg_number(&args[count], ARG_BANDWIDTH,
		   (uint64_t)((unsigned __int128)work->bytes * 1000 / work->duration_ns));
	args[count++].type = ARG_THOUSANDTHS;
	return count;
}

/* One flow visits all kernels of a graph in turn. Otherwise it ends at the first kernel. */
static void put_work(struct tracks *t, const struct work *work, const struct launch *launch)
{
	static const uint8_t categories[WORK_KINDS] = {[WORK_KERNEL] = CATEGORY_KERNEL,
						       [WORK_COPY] = CATEGORY_COPY,
						       [WORK_MEMSET] = CATEGORY_MEMSET};
	struct track_label *label = label_of(t, work);
	struct track *track = tracks_lane(t, work);
	struct track_arg args[WORK_ARGS_MAX];
	struct track_span span = {
		.label = label,
		.track = track,
		.start_ns = work->start_ns,
		.duration_ns = work->duration_ns,
		.args = args,
		.launch = launch,
		.flow = launch ? flow_of(t->process, launch) : 0,
		.name = label->name,
		.stack = launch ? launch->stack : 0,
		.category = categories[work->kind],
		.ends_flow = !work->graph_node,
	};

	span.arg_count = work_args(t, work, args);
	t->writer->span(t, &span);
}

void tracks_work(struct sink *sink, const struct process *process, const struct work *work,
		 const struct launch *launch)
{
	struct tracks *t = sink->state;

	(void)process;
	if (t->writer->work)
		return t->writer->work(t, work, launch);
	put_work(t, work, launch);
}

void tracks_memory(struct sink *sink, const struct process *process, uint32_t pool,
		   uint64_t time_ns, uint64_t live_bytes)
{
	static const struct track_counter allocated = {"allocated memory", "memory", "bytes"};
	struct tracks *t = sink->state;
	struct track **track = &t->counters->memory[pool];

	(void)process;
	if (!*track)
		*track = tracks_add(t, &(struct track){
					       .kind = TRACK_COUNTER,
					       .parent = pool == MEMORY_POOL_HOST
								 ? t->root
								 : tracks_device(t, pool),
					       .name = allocated.name,
					       .counter = &allocated,
				       });
	t->writer->counter(t, *track, time_ns, live_bytes);
}
