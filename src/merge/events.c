/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reading: calls and work, joined, added up and handed to the exporters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/reading.h"

static uint32_t narrow(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
}

/* A number that a label stands for; all that have none are one. */
static uint32_t label_number(uint64_t number, uint32_t label_count)
{
	return number < label_count ? (uint32_t)number : 0;
}

static const struct copy_shape *copy_shape(const struct reading *reading, const struct work *work)
{
	const struct model *model = reading->model;

	return &model->copy_shapes.rows[work->shape < model->copy_shapes.count ? work->shape : 0];
}

/* The leaf of a path, and what is counted of copies and sets. */
static void count_work(struct reading *reading, const struct work *work, struct owner *owner)
{
	struct transfer_sum *sum = NULL;

	switch (work->kind) {
	case WORK_KERNEL:
		owner->leaf = LEAF_KERNEL;
		owner->what = work->shape;
		return;
	case WORK_COPY:
		owner->leaf = LEAF_COPY;
		owner->what = label_number(copy_shape(reading, work)->kind, COPY_KINDS);
		sum = &reading->copies[work->shape < reading->model->copy_shapes.count ? work->shape
										       : 0];
		break;
	case WORK_SET:
		owner->leaf = LEAF_SET;
		sum = &reading->sets[label_number(work->shape, MEMORY_KINDS)];
		break;
	}
	sum->count++;
	sum->bytes += work->bytes;
	sum->gpu_ns += work->duration_ns;
}

/* Work of a graph belongs to who launched the graph and to who made the node. */
static void own_graph_work(struct reading *reading, const struct work *work,
			   const struct launch *launch, struct owner *owner)
{
	struct nodes *nodes = &reading->model->nodes;
	enum graph_stacks wanted = reading->run->settings->graph_stacks;
	uint32_t creation = nodes_creation(nodes, work->graph_node, launch->enter_ns);

	reading->run->graph_work_count++;
	if (creation && !frames_has_stack(&reading->frames, nodes->creations[creation].stack))
		creation = CREATION_UNKNOWN;
	/* (A log without any nodes is of a tracer that did not record them.) */
	if (!creation && nodes->count)
		reading->run->graph_work_unmade_count++;
	if (wanted == GRAPH_STACKS_REPLAY)
		return;
	owner->in_graph = 1;
	owner->creation = creation;
	if (wanted != GRAPH_STACKS_CAPTURE || !creation)
		return;
	owner->in_graph = 0;
	owner->stack = owner->range = 0;
	owner->api = 0;
}

static void joined(void *context, const struct work *work, const struct launch *launch)
{
	struct reading *reading = context;
	struct run *run = reading->run;
	struct owner owner = {0};
	uint32_t place;

	run->work_count[work->kind]++;
	run->gpu_ns += work->duration_ns;
	count_work(reading, work, &owner);
	if (run->settings->by != BY_DEFAULT)
		owner.root =
			plant_root(run, reading->model, work->stream, launch ? launch->thread : 0);
	if (!launch) {
		run->work_without_call_count++;
	} else if (!frames_has_stack(&reading->frames, launch->stack)) {
		run->work_without_stack_count++;
	} else {
		run->attributed_gpu_ns += work->duration_ns;
		owner.stack = launch->stack;
		owner.api = launch->api;
	}
	if (launch && work->graph_node)
		own_graph_work(reading, work, launch, &owner);
	place = totals_place(&reading->totals, &owner);
	if (place == TOTAL_FAILED) {
		reading->error = -ENOMEM;
		return;
	}
	reading->totals.entries[place].weights[WEIGHT_GPU_TIME] += work->duration_ns;
	reading->totals.entries[place].weights[WEIGHT_COUNT]++;
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->work &&
		    sink->exporter->work(sink, &reading->process, work, launch) < 0)
			reading->error = -ENOMEM;
	}
}

static void read_call(struct reading *reading, const struct launch *call, uint64_t duration_ns,
		      uint64_t result)
{
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->call &&
		    sink->exporter->call(sink, &reading->process, call, duration_ns, result) < 0)
			reading->error = -ENOMEM;
	}
	if (reading->model->nodes.made_count)
		nodes_note_call(&reading->model->nodes, call->thread, call->enter_ns,
				call->enter_ns + duration_ns, call->api);
	if (correlate_launch(reading->correlate, call) < 0)
		reading->error = -ENOMEM;
}

/* What the classes of calls are to the joining. */
static const uint8_t class_flags[XT_API_CLASSES] = {
	[XT_API_LAUNCH] = LAUNCH_EXPECTED,
	[XT_API_GRAPH_LAUNCH] = LAUNCH_EXPECTED | LAUNCH_GRAPH,
	[XT_API_COPY] = LAUNCH_EXPECTED | LAUNCH_TRANSFER,
	[XT_API_SET] = LAUNCH_EXPECTED | LAUNCH_TRANSFER,
};

static uint8_t count_call(struct run *run, uint32_t class, bool has_failed)
{
	uint8_t flags = class < XT_API_CLASSES ? class_flags[class] : 0;

	if (flags & LAUNCH_TRANSFER)
		run->transfer_call_count++;
	else if (flags)
		run->launch_count++;
	if (!has_failed)
		return flags;
	if (flags && !(flags & LAUNCH_TRANSFER))
		run->launch_failed_count++;
	return flags & (uint8_t)~LAUNCH_EXPECTED;
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
	const struct model *model = reading->process.model;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !reading->error; r++) {
		uint16_t place = model_api(model, api[r]);
		struct launch call = {
			.correlation = correlation[r],
			.enter_ns = enter_ns[r],
			.stack = narrow(stack[r]),
			.thread = narrow(thread[r]),
			.api = place,
			.flags = count_call(reading->run, model->apis.rows[place].class,
					    result[r] != 0),
		};

		read_call(reading, &call, duration_ns[r], result[r]);
	}
}

/* Where kernels, copies and sets differ. */
static const struct {
	unsigned shape_column;
	unsigned bytes_column; /* one that is not there is all zeros */
	uint8_t kind;
} work_columns[XT_KIND_COUNT] = {
	[XT_KIND_KERNEL] = {XT_KERNEL_SHAPE, XT_COPY_BYTES, WORK_KERNEL},
	[XT_KIND_COPY] = {XT_COPY_SHAPE, XT_COPY_BYTES, WORK_COPY},
	[XT_KIND_SET] = {XT_SET_MEMORY, XT_SET_BYTES, WORK_SET},
};

static void read_work(struct reading *reading, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	const uint64_t *correlation = xt_chunk_u64(chunk, XT_KERNEL_CORRELATION);
	const uint64_t *stream = xt_chunk_u64(chunk, XT_KERNEL_STREAM);
	const uint64_t *shape = xt_chunk_u64(chunk, work_columns[kind].shape_column);
	const uint64_t *start_ns = xt_chunk_u64(chunk, XT_KERNEL_START_NS);
	const uint64_t *duration_ns = xt_chunk_u64(chunk, XT_KERNEL_DURATION_NS);
	const uint64_t *graph_node = xt_chunk_u64(chunk, XT_KERNEL_GRAPH_NODE);
	const uint64_t *bytes = xt_chunk_u64(chunk, work_columns[kind].bytes_column);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !reading->error; r++) {
		struct work work = {
			.correlation = correlation[r],
			.start_ns = start_ns[r],
			.duration_ns = duration_ns[r],
			.graph_node = graph_node[r],
			.bytes = bytes[r],
			.stream = narrow(stream[r]),
			.shape = narrow(shape[r]),
			.kind = work_columns[kind].kind,
		};

		if (correlate_work(reading->correlate, &work) < 0)
			reading->error = -ENOMEM;
	}
}

static void report_damage(const struct input *log, const struct xt_damage *first,
			  const struct xt_damage *second, struct report *report)
{
	uint64_t damaged = first->chunks_damaged + second->chunks_damaged;

	if (damaged)
		report_warn(report, "%s: %llu damaged chunk%s passed over", log->path,
			    (unsigned long long)damaged, damaged == 1 ? "" : "s");
	/* (The bytes of damaged chunks are among those.) */
	if (second->bytes_skipped && !second->chunks_damaged && !second->truncated)
		report_warn(report, "%s: %llu bytes that are no chunk passed over", log->path,
			    (unsigned long long)second->bytes_skipped);
	if (second->chunks_missing)
		report_warn(report, "%s: %llu chunk%s missing", log->path,
			    (unsigned long long)second->chunks_missing,
			    second->chunks_missing == 1 ? " is" : "s are");
	/* What a live or killed process has not written yet is to be had from here. */
	if (log->has_spool && !second->closed)
		report_warn(report,
			    "%s: its process is running or was killed; the last events are still "
			    "in %s.spool",
			    log->path, log->path);
	else if (second->truncated)
		report_warn(report, "%s: the file is cut short; %llu bytes passed over", log->path,
			    (unsigned long long)second->bytes_skipped);
	else if (!second->closed)
		report_warn(report, "%s: was not closed; its end may be missing", log->path);
}

static void (*const read_by_kind[XT_KIND_COUNT])(struct reading *, const struct xt_chunk *) = {
	[XT_KIND_CALL] = read_calls,
	[XT_KIND_KERNEL] = read_work,
	[XT_KIND_COPY] = read_work,
	[XT_KIND_SET] = read_work,
};

static uint32_t wanted_kinds(void)
{
	uint32_t wanted = 0;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		wanted |= read_by_kind[kind] ? 1u << kind : 0;
	return wanted;
}

/* No more will come: what the log said as a whole goes to the run. 0 or -ENOMEM. */
static int finish(struct reading *reading)
{
	const struct correlate_counts *counts = correlate_finish(reading->correlate);
	const struct model *model = reading->model;
	struct run *run = reading->run;
	struct names *names = &run->paths.names;
	int error = reading->error;

	run->launch_alone_count += counts->launches_alone;
	run->transfer_alone_count += counts->transfers_alone;
	run->nodes_cyclic_count += model->nodes.cyclic_count;
	for (size_t s = 0; s < model->copy_shapes.count && !error; s++)
		if (reading->copies[s].count)
			error = transfers_add_copies(&run->transfers, names,
						     &model->copy_shapes.rows[s],
						     &reading->copies[s]);
	for (uint32_t m = 0; m < MEMORY_KINDS && !error; m++)
		if (reading->sets[m].count)
			error = transfers_add_sets(&run->transfers, names, m, &reading->sets[m]);
	return error;
}

int reading_events(struct reading *reading, struct report *report)
{
	const struct input *log = reading->process.log;
	struct xt_reader *reader = inputs_open(log->path, report);
	struct correlate_listener listener = {joined, reading};
	const struct xt_chunk *chunk;
	int error;

	if (!reader)
		return 0;
	reading->copies = calloc(reading->model->copy_shapes.count, sizeof(*reading->copies));
	error = reading->copies ? correlate_new(&reading->correlate, NULL, listener) : -ENOMEM;
	if (error)
		goto out;
	while (!reading->error && (chunk = xt_reader_next(reader, wanted_kinds())))
		read_by_kind[xt_chunk_kind(chunk)](reading, chunk);
	error = finish(reading);
	report_damage(log, &reading->model->damage, xt_reader_damage(reader), report);
out:
	correlate_free(reading->correlate);
	reading->correlate = NULL;
	xt_reader_close(reader);
	return error;
}

void reading_free(struct reading *reading)
{
	totals_free(&reading->totals);
	free(reading->copies);
	reading->copies = NULL;
}
