/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole way: for each log, its model, its call paths, then its events, which are joined and
 * handed to the exporters as they come; at the end the outputs are completed.
 */
#include "merge/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/addresses.h"
#include "merge/exporter.h"
#include "merge/text.h"
#include "merge/totals.h"

#define KERNEL_MARK "[GPU_Kernel]"

const struct loss_cause loss_causes[LOSS_COUNT] = {
	[LOSS_RING_FULL] = {"calls.lost.ring_full", "calls: the ring was full"},
	[LOSS_NO_RING] = {"calls.lost.no_ring", "calls: there was no ring for the thread"},
	[LOSS_NESTED] = {"calls.lost.nested", "calls: too many within each other"},
	[LOSS_STACKS] = {"stacks.lost", "stacks: did not fit into the ring"},
	[LOSS_KERNELS_INVALID] = {"kernels.invalid", "kernels: record without valid times"},
	[LOSS_CUPTI_DROPPED] = {"cupti.dropped", "records that CUPTI dropped"},
	[LOSS_BUFFERS] = {"buffers.discarded", "activity buffers: none was free"},
};

/* One reading of the events of one log. */
struct reading {
	struct run *run;
	struct sink *sinks;
	size_t sink_count;
	struct process process;
	struct frames frames;
	struct totals totals;
	struct correlate *correlate;
	int error; /* of a listener, which cannot return it */
};

static void joined(void *context, const struct kernel *kernel, const struct launch *launch)
{
	struct reading *reading = context;
	struct run *run = reading->run;
	uint32_t stack = launch ? launch->stack : 0;

	run->kernel_count++;
	run->gpu_ns += kernel->duration_ns;
	if (!launch) {
		run->kernel_without_call_count++;
	} else if (!frames_has_stack(&reading->frames, stack)) {
		run->kernel_without_stack_count++;
		stack = 0;
	} else {
		run->attributed_gpu_ns += kernel->duration_ns;
	}
	if (totals_add(&reading->totals, stack, stack ? launch->api : 0, kernel->shape,
		       kernel->duration_ns) < 0)
		reading->error = -ENOMEM;
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->kernel &&
		    sink->exporter->kernel(sink, &reading->process, kernel, launch) < 0)
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
	if (correlate_launch(reading->correlate, call) < 0)
		reading->error = -ENOMEM;
}

static uint32_t narrow(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
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
		uint32_t class = model->apis.rows[place].class;
		struct launch call = {
			.correlation = correlation[r],
			.enter_ns = enter_ns[r],
			.stack = narrow(stack[r]),
			.thread = narrow(thread[r]),
			.api = place,
		};

		if (class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH) {
			reading->run->launch_count++;
			reading->run->launch_failed_count += result[r] != 0;
			call.flags = (uint8_t)((result[r] ? 0 : LAUNCH_EXPECTED) |
					       (class == XT_API_GRAPH_LAUNCH ? LAUNCH_GRAPH : 0));
		}
		read_call(reading, &call, duration_ns[r], result[r]);
	}
}

static void read_kernels(struct reading *reading, const struct xt_chunk *chunk)
{
	const uint64_t *correlation = xt_chunk_u64(chunk, XT_KERNEL_CORRELATION);
	const uint64_t *stream = xt_chunk_u64(chunk, XT_KERNEL_STREAM);
	const uint64_t *shape = xt_chunk_u64(chunk, XT_KERNEL_SHAPE);
	const uint64_t *start_ns = xt_chunk_u64(chunk, XT_KERNEL_START_NS);
	const uint64_t *duration_ns = xt_chunk_u64(chunk, XT_KERNEL_DURATION_NS);
	const uint64_t *graph_node = xt_chunk_u64(chunk, XT_KERNEL_GRAPH_NODE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !reading->error; r++) {
		struct kernel kernel = {
			.correlation = correlation[r],
			.start_ns = start_ns[r],
			.duration_ns = duration_ns[r],
			.graph_node = graph_node[r],
			.stream = narrow(stream[r]),
			.shape = narrow(shape[r]),
		};

		if (correlate_kernel(reading->correlate, &kernel) < 0)
			reading->error = -ENOMEM;
	}
}

/* Puts what was added up into the tree: below the stack, the API's name, and below that the
 * kernel's. (A kernel of a graph goes below the call that launched the graph.) */
static int plant_totals(struct reading *reading)
{
	struct paths *paths = &reading->run->paths;
	const struct process *process = &reading->process;
	uint32_t unattributed =
		names_intern(&paths->names, FRAME_UNATTRIBUTED, strlen(FRAME_UNATTRIBUTED));

	for (uint32_t t = 0; t < reading->totals.size; t++) {
		const struct total *total = &reading->totals.entries[t];
		uint32_t node, name;
		const char *text;
		char *leaf;
		int length;

		if (!total->kernel_count)
			continue;
		name = demangle(process->names, model_kernel_name(process->model, total->shape),
				DEMANGLE_SHORT);
		if (name == NAME_FAILED)
			return -ENOMEM;
		text = names_text(&paths->names, name, NULL);
		length = asprintf(&leaf, KERNEL_MARK "%s", text);
		if (length < 0)
			return -ENOMEM;
		name = names_intern(&paths->names, leaf, (size_t)length);
		free(leaf);
		if (total->stack)
			node = paths_child(paths, reading->frames.nodes[total->stack],
					   frames_api_name(&reading->frames, total->stack,
							   (uint16_t)total->api));
		else
			node = paths_child(paths, reading->frames.root, unattributed);
		node = paths_child(paths, node, name);
		if (node == PATH_FAILED)
			return -ENOMEM;
		paths->nodes[node].gpu_ns += total->gpu_ns;
		paths->nodes[node].kernel_count += total->kernel_count;
	}
	return 0;
}

/* How a process is called. To be given back with free(); NULL if memory ran out. */
static char *make_label(const struct inputs *inputs, const struct input *log,
			const struct model *model)
{
	const char *name = model_process_name(model);
	char *label;
	int length = inputs->has_several_hosts
			     ? asprintf(&label, "%s (%u on %s)", name, log->header.pid, log->host)
			     : asprintf(&label, "%s (%u)", name, log->header.pid);

	return length < 0 ? NULL : label;
}

/* The frame below which all paths of a process stand, if there are several. */
static uint32_t process_root(struct paths *paths, const struct process *process)
{
	size_t length = strlen(process->label);
	uint32_t name;
	char *clean;

	if (process->process_count == 1)
		return PATH_ROOT;
	clean = malloc(text_clean_bound(length));
	name = clean ? names_intern(&paths->names, clean,
				    text_clean(clean, process->label, length, ';'))
		     : NAME_FAILED;
	free(clean);
	return paths_child(paths, PATH_ROOT, name);
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

static void count_losses(struct reading *reading, struct report *report)
{
	const struct model *model = reading->process.model;

	for (int l = 0; l < LOSS_COUNT; l++) {
		uint64_t value = model_account(model, loss_causes[l].account);

		reading->run->losses[l] += value;
		if (value)
			report_warn(report, "%s: %llu lost while recording (%s)",
				    reading->process.log->path, (unsigned long long)value,
				    loss_causes[l].what);
	}
	if (!strcmp(model_meta(model, "gpu.simulated"), "1"))
		reading->run->has_simulated_gpu = true;
}

/* The second reading: calls and kernels. */
static int read_events(struct reading *reading, struct report *report)
{
	const struct input *log = reading->process.log;
	struct xt_reader *reader = inputs_open(log->path, report);
	struct correlate_listener listener = {joined, reading};
	const struct correlate_counts *counts;
	const struct xt_chunk *chunk;
	int error;

	if (!reader)
		return 0;
	error = correlate_new(&reading->correlate, NULL, listener);
	if (error)
		goto out;
	while (!reading->error &&
	       (chunk = xt_reader_next(reader, 1u << XT_KIND_CALL | 1u << XT_KIND_KERNEL))) {
		if (xt_chunk_kind(chunk) == XT_KIND_CALL)
			read_calls(reading, chunk);
		else
			read_kernels(reading, chunk);
	}
	counts = correlate_finish(reading->correlate);
	reading->run->launch_alone_count += counts->launches_alone;
	report_damage(log, &reading->process.model->damage, xt_reader_damage(reader), report);
	error = reading->error;
out:
	correlate_free(reading->correlate);
	xt_reader_close(reader);
	return error;
}

static int read_process(struct reading *reading, struct report *report)
{
	int error = 0;

	for (size_t e = 0; e < reading->sink_count && !error; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->process)
			error = sink->exporter->process(sink, &reading->process);
	}
	if (!error)
		error = read_events(reading, report);
	return error ? error : plant_totals(reading);
}

static int read_log(struct run *run, size_t index, struct sink *sinks, size_t sink_count)
{
	const struct input *log = &run->inputs->logs[index];
	struct xt_reader *reader = inputs_open(log->path, run->report);
	struct addresses addresses = {0};
	struct demangle_cache names = {0};
	struct model *model = NULL;
	struct reading reading = {.run = run, .sinks = sinks, .sink_count = sink_count};
	char *label = NULL;
	uint32_t root;
	int error;

	if (!reader)
		return 0;
	error = model_load(&model, reader);
	xt_reader_close(reader);
	if (error)
		return error;
	label = make_label(run->inputs, log, model);
	if (!label) {
		model_free(model);
		return -ENOMEM;
	}
	names = (struct demangle_cache){.mangled = &model->names, .shown = &run->paths.names};
	reading.process = (struct process){
		.log = log,
		.model = model,
		.frames = &reading.frames,
		.paths = &run->paths,
		.names = &names,
		.label = label,
		.index = index,
		.process_count = run->inputs->count,
		.origin_ns = (int64_t)((uint64_t)run->inputs->origin_ns - (uint64_t)log->shift_ns),
	};
	root = process_root(&run->paths, &reading.process);
	error = root == PATH_FAILED ? -ENOMEM : 0;
	if (!error)
		error = addresses_resolve(&addresses, model, ADDRESSES_SHOWN, run->report);
	if (!error)
		error = frames_build(&reading.frames, model, &addresses, &names, &run->paths, root);
	addresses_free(&addresses);
	if (!error)
		error = read_process(&reading, run->report);
	if (!error)
		count_losses(&reading, run->report);
	frames_free(&reading.frames);
	totals_free(&reading.totals);
	demangle_cache_free(&names);
	free(label);
	model_free(model);
	return error;
}

static void report_missing(const struct run *run, struct report *report)
{
	if (!run->launch_count && !run->kernel_count)
		report_warn(report, "there are no launches in the log%s",
			    run->inputs->count == 1 ? "" : "s");
	else if (!run->kernel_count)
		report_warn(report, "there are launches, but no kernels: the GPU's side was not "
				    "recorded");
	if (run->kernel_without_call_count)
		report_warn(report, "%llu kernels have no call: shown as " FRAME_UNATTRIBUTED,
			    (unsigned long long)run->kernel_without_call_count);
	if (run->kernel_without_stack_count)
		report_warn(
			report,
			"%llu kernels have a call without a stack: shown as " FRAME_UNATTRIBUTED,
			(unsigned long long)run->kernel_without_stack_count);
}

static int read_all(struct run *run, struct sink *sinks, size_t sink_count)
{
	int error = 0;

	for (size_t i = 0; i < run->inputs->count && !error; i++)
		error = read_log(run, i, sinks, sink_count);
	if (error)
		return error;
	report_missing(run, run->report);
	for (size_t e = 0; e < sink_count && !error; e++)
		error = sinks[e].exporter->end(&sinks[e], run);
	return error;
}

static int open_sinks(const struct options *options, struct sink *sinks, struct report *report)
{
	int error = 0;

	for (size_t e = 0; e < options->output_count && !error; e++) {
		struct sink *sink = &sinks[e];

		*sink = (struct sink){.exporter = options->outputs[e].exporter,
				      .settings = &options->settings};
		error = output_open(&sink->out, options->outputs[e].path);
		if (error)
			report_error(report, STATUS_FAILED, "%s: cannot be written: %s",
				     options->outputs[e].path, strerror(-error));
		else if (sink->exporter->begin && sink->exporter->begin(sink) < 0)
			error = -ENOMEM;
	}
	return error;
}

static void close_sinks(struct sink *sinks, size_t count, bool whole, struct report *report)
{
	for (size_t e = 0; e < count; e++) {
		struct sink *sink = &sinks[e];
		int error = 0;

		if (whole)
			error = output_commit(&sink->out);
		else
			output_discard(&sink->out);
		if (error)
			report_error(report, STATUS_FAILED, "%s: cannot be written: %s",
				     !strcmp(sink->out.path, "-") ? "stdout" : sink->out.path,
				     strerror(-error));
		if (sink->exporter && sink->exporter->free)
			sink->exporter->free(sink);
	}
}

void merge_run(const struct options *options, const struct inputs *inputs, struct report *report)
{
	struct sink sinks[OPTIONS_OUTPUTS_MAX] = {0};
	struct run run = {.inputs = inputs, .report = report};
	int error = paths_init(&run.paths);

	if (!error) {
		error = open_sinks(options, sinks, report);
		if (!error)
			error = read_all(&run, sinks, options->output_count);
		close_sinks(sinks, options->output_count, !error, report);
	}
	if (error && report->status != STATUS_FAILED)
		report_error(report, STATUS_FAILED, "%s", strerror(-error));
	paths_free(&run.paths);
}
