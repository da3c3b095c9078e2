/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run profile: what `xtrace diff` needs to know about a run. Costs are summed by call path,
 * kernel, function and so on for each batch of iterations. Only their means and standard errors are
 * written, as JSON: docs/DIFF.md describes each member, and src/diff/load/run_profile.c reads it.
 *
 * Numbers are rounded to their useful precision, because profiles may be kept in a repository.
 */
#include "merge/profile/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "idle/idle.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/naming/joined_paths.h"
#include "merge/base/labels.h"
#include "merge/sums/run.h"
#include "merge/sums/trust.h"

#define CELLS	     (PROFILE_BATCHES + 1) /* one for each batch, one for time outside them */
#define MEMSETS	     COPY_KINDS
#define DEVICES_MAX  TIMELINE_DEVICES_MAX
#define MEAN_DIGITS  9
#define ERROR_DIGITS 3

/* A process in the document. All texts belong to profile.texts. */
struct profile_process {
	const struct input *log;
	const char *name, *command, *driver, *cupti;
	struct windows windows; /* without the times */
};

struct profile_device {
	uint32_t number;
	const char *name, *uuid;
};

/*
 * The totals are the first subjects: enum profile_total is their index. So 0 as the index of any
 * other subject means that it is unknown so far.
 */
struct profile {
	struct paths tree; /* call paths without process frames; also holds all names */
	struct subjects subjects;
	struct arena *texts;
	struct profile_process *processes;
	size_t process_count, process_capacity;
	struct profile_device *devices;
	size_t device_count, device_capacity;
	uint32_t batch_count; /* of the run; 0: unknown so far */
	bool is_mixed; /* the processes have different numbers of batches, so nothing is known by batch */
	/* State of the current process: */
	struct windows windows;
	double shares[PROFILE_BATCHES];
	struct cell {
		uint64_t value, count;
	} * cells; /* CELLS for each total; the last is for time outside the batches */
	size_t cell_capacity;
	struct call_place {
		uint32_t api_subject;
		uint32_t path_subject; /* 0: not listed */
		uint16_t api;
	} * call_places; /* by XT_STACK_ID; 0: calls without a stack */
	struct copy_place {
		uint32_t time_subject, bytes_subject;
	} copies[COPY_KINDS + 1]; /* by copy kind; the last is for memsets */
	uint32_t idle[IDLE_CLASSES];
	int64_t first_ns,
		last_ns; /* of the run: start of a process, end of a call or of GPU work */
	uint64_t busy_until_ns[DEVICES_MAX + 1];
	uint8_t *waits;	       /* by index in the model's apis: the CPU waits in this function */
	bool lacks_iterations; /* a log lacks the requested range */
	bool has_iterations;   /* another log has it */
};

static int profile_begin(struct sink *sink)
{
	struct profile *p = sink->state;

	paths_init(&p->tree);
	p->texts = arena_new();
	for (uint32_t t = 0; t < PROFILE_TOTALS; t++)
		subjects_index(&p->subjects, PROFILE_TOTAL, t);
	return 0;
}

static uint32_t intern(struct profile *p, const char *text)
{
	return names_intern(&p->tree.names, text, strlen(text));
}

/* Returns a name of the run as one of the profile. */
static uint32_t copy_name(struct profile *p, const struct process *process, uint32_t name)
{
	size_t length;
	const char *text = names_text(&process->paths->names, name, &length);

	return names_intern(&p->tree.names, text, length);
}

static uint32_t named(struct profile *p, enum profile_level level, const char *text)
{
	return subjects_index(&p->subjects, level, intern(p, text));
}

/* batch: -1 outside the iterations. */
static void profile_add(struct profile *p, uint32_t place, int batch, double value, double count)
{
	subject_add(&p->subjects.list[place], batch, batch < 0 ? 0.0 : p->shares[batch], value,
		    count);
}

/* The same, for the batch at this time. */
static void add_at(struct profile *p, uint32_t place, uint64_t time_ns, double value, double count)
{
	profile_add(p, place, windows_batch(&p->windows, time_ns), value, count);
}

/* A moment until which the run lasted. */
static void note_end(struct profile *p, const struct process *process, uint64_t end_ns)
{
	int64_t here_ns = process_time_ns(process, end_ns);

	p->last_ns = larger(p->last_ns, here_ns);
}

/* The run lasted from the start of its first process on. */
static void note_start(struct profile *p, const struct process *process)
{
	uint64_t start_ns = model_process_start_ns(process->model, &process->log->header);
	int64_t here_ns = process_time_ns(process, start_ns);

	if (!p->process_count || here_ns < p->first_ns)
		p->first_ns = here_ns;
}

/* Adds the time from each iteration to the next. */
static void add_walls(struct profile *p)
{
	const struct windows *w = &p->windows;

	for (size_t i = 0; i < w->found_count; i++)
		add_at(p, TOTAL_WALL, w->starts_ns[i],
		       (double)(windows_end_ns(w, i) - w->starts_ns[i]), 1.0);
}

/* Names of the nested ranges, outermost first, separated by semicolons. */
static char *range_text(const struct model *model, uint32_t node)
{
	const struct range_node *row = &model->ranges.nodes.list[node];
	char *outer = row->parent == RANGE_NONE ? NULL : range_text(model, row->parent);
	char *name = iterations_range_name(model, row);
	char *text = xt_asprintf("%s%s%s", outer ? outer : "", outer ? ";" : "", name);

	free_all(outer, name);
	return text;
}

static uint32_t range_name(struct profile *p, const struct model *model, uint32_t node)
{
	char *text = range_text(model, node);
	uint32_t name = intern(p, text);

	free(text);
	return name;
}

static bool is_within(const struct model *model, uint32_t state, uint32_t node)
{
	for (; state != RANGE_NONE; state = model->ranges.nodes.list[state].parent)
		if (state == node)
			return true;
	return false;
}

/* Adds how long threads were in ranges and how often they entered them. */
static void add_spans(struct profile *p, const struct model *model)
{
	const struct ranges *ranges = &model->ranges;
	uint32_t *places = xt_calloc(ranges->nodes.count + 1, sizeof(*places));

	for (uint32_t n = 1; n < ranges->nodes.count; n++)
		places[n] = subjects_index(&p->subjects, PROFILE_SPAN, range_name(p, model, n));
	for (uint32_t t = 0; t < ranges->thread_count; t++) {
		struct range_history history = ranges_history(ranges, t);
		uint32_t before = RANGE_NONE;

		for (size_t i = 0; i + 1 < history.count; i++) {
			uint32_t state = history.states[i];

			for (uint32_t n = state; n != RANGE_NONE; n = ranges->nodes.list[n].parent)
				add_at(p, places[n], history.times_ns[i],
				       (double)(history.times_ns[i + 1] - history.times_ns[i]),
				       !is_within(model, before, n));
			before = state;
		}
	}
	free(places);
}

static const char *copy_text(struct profile *p, const char *text)
{
	return arena_copy_text(p->texts, text, strlen(text));
}

static void add_devices(struct profile *p, const struct model *model)
{
	for (size_t s = 1; s < model->streams.count; s++) {
		const struct stream *stream = &model->streams.rows[s];
		size_t d = 0;

		while (d < p->device_count && p->devices[d].number != stream->device)
			d++;
		if (!stream->defined || d < p->device_count)
			continue;
		xt_append(p->devices, p->device_count, p->device_capacity,
			  (struct profile_device){
				  .number = stream->device,
				  .name = copy_text(p, model_gpu(model, stream->device, "name")),
				  .uuid = copy_text(p, model_gpu(model, stream->device, "uuid"))});
	}
}

static void describe(struct profile *p, const struct process *process)
{
	const struct model *model = process->model;

	xt_append(p->processes, p->process_count, p->process_capacity,
		  (struct profile_process){
			  .log = process->log,
			  .name = copy_text(p, model_process_name(model)),
			  .command = copy_text(p, model_meta(model, "process.cmdline")),
			  .driver = copy_text(p, model_meta(model, "cuda.driver_version")),
			  .cupti = copy_text(p, model_meta(model, "cupti.version"))});
	add_devices(p, model);
}

/*
 * Sums by batch need the same number of batches in all processes. A process without events has none
 * and is ignored.
 */
static void settle_batches(struct profile *p)
{
	const struct windows *w = &p->windows;

	for (uint32_t b = 0; b < w->batch_count; b++)
		p->shares[b] = w->source == ITERATIONS_NONE ? w->batch_count : 1.0 / w->lengths[b];
	if (!w->batch_count)
		return;
	if (p->batch_count && p->batch_count != w->batch_count)
		p->is_mixed = true;
	p->batch_count = larger(p->batch_count, w->batch_count);
}

static void add_process(struct sink *sink, const struct process *process)
{
	struct profile *p = sink->state;
	const struct model *model = process->model;
	size_t stacks = model_stack_limit(model) + 1, apis = model->apis.count + 1;

	windows_make(&p->windows, process->iterations);
	p->windows.name = copy_text(p, p->windows.name ? p->windows.name : "");
	p->lacks_iterations |= p->windows.source == ITERATIONS_MISSING;
	p->has_iterations |= p->windows.source == ITERATIONS_RANGE;
	settle_batches(p);
	free_all(p->call_places, p->cells);
	p->cells = NULL;
	p->cell_capacity = 0;
	p->call_places = xt_calloc(stacks, sizeof(*p->call_places));
	p->waits = xt_reallocarray(p->waits, apis, 1);
	for (size_t a = 0; a < model->apis.count; a++)
		p->waits[a] = thread_state_waits(threads_state_of(model, &model->apis.rows[a]));
	memset(p->busy_until_ns, 0, sizeof(p->busy_until_ns));
	note_start(p, process);
	add_walls(p);
	add_spans(p, model);
	describe(p, process);
}

/* Intern a frame in the profile's tree. Numbers in NVTX range names are masked. */
static uint32_t plain_name(struct profile *p, const char *text, size_t length)
{
	uint32_t name;
	char *plain;

	if (strncmp(text, "[NVTX ", strlen("[NVTX ")) != 0)
		return names_intern(&p->tree.names, text, length);
	plain = xt_strndup(text, length);
	xt_mask_numbers(plain);
	name = intern(p, plain);
	free(plain);
	return name;
}

/* Copy the frames of a node of the run's tree, without the process frame, to the profile's tree. */
static uint32_t copy_path(struct profile *p, const struct process *process, uint32_t node)
{
	const struct paths *paths = process->paths;
	uint32_t *chain = NULL, copy = PATH_ROOT;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity);

	for (int d = 0; d < depth; d++) {
		uint32_t name = paths->nodes[chain[d]].name;
		size_t length;
		const char *text = names_text(&paths->names, name, &length);

		if (!d && process->process_count > 1 && name == process->root_name)
			continue;
		name = plain_name(p, text, length);
		copy = paths_child(&p->tree, copy, name);
	}
	free(chain);
	return copy;
}

/* True for calls that are listed by call path even if no GPU time is below them. */
static bool is_shown(const struct profile *p, const struct model *model, uint16_t api)
{
	uint32_t class = model->apis.rows[api].class;

	return p->waits[api] || class == XT_API_ALLOC || class == XT_API_FREE;
}

/* Finds the subjects of a call. */
static void settle_call(struct profile *p, const struct process *process, const struct launch *call,
			struct call_place *known)
{
	bool has_stack = frames_has_stack(process->frames, call->stack);
	uint32_t name =
		copy_name(p, process, frames_api_name(process->frames, call->stack, call->api));
	uint32_t node;

	*known = (struct call_place){
		.api = call->api, .api_subject = subjects_index(&p->subjects, PROFILE_API, name)};
	if (!is_shown(p, process->model, call->api))
		return;
	node = has_stack ? copy_path(p, process, joined_paths_node(process->frames, call->stack))
			 : paths_child(&p->tree, PATH_ROOT, intern(p, FRAME_UNATTRIBUTED));
	node = paths_child(&p->tree, node, name);
	known->path_subject = subjects_index(&p->subjects, PROFILE_CALL, node);
}

static void profile_add_call(struct sink *sink, const struct process *process,
			     const struct launch *call, uint64_t duration_ns, uint64_t result)
{
	struct profile *p = sink->state;
	uint32_t class = process->model->apis.rows[call->api].class;
	bool has_stack = frames_has_stack(process->frames, call->stack);
	struct call_place *known = &p->call_places[has_stack ? call->stack : 0];

	(void)result;
	note_end(p, process, call->enter_ns + duration_ns);
	if (!known->api_subject || known->api != call->api)
		settle_call(p, process, call, known);
	add_at(p, known->api_subject, call->enter_ns, (double)duration_ns, 1.0);
	if (known->path_subject)
		add_at(p, known->path_subject, call->enter_ns, (double)duration_ns, 1.0);
	if (class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH)
		add_at(p, TOTAL_LAUNCHES, call->enter_ns, 1.0, 1.0);
	if (p->waits[call->api])
		add_at(p, TOTAL_WAITS, call->enter_ns, (double)duration_ns, 1.0);
}

static void add_bytes(struct profile *p, const struct process *process, const struct work *work,
		      int batch)
{
	const struct model *model = process->model;
	uint32_t kind =
		work->kind == WORK_MEMSET
			? MEMSETS
			: label_index(model_copy_shape(model, work->shape)->kind, COPY_KINDS);
	struct copy_place *place = &p->copies[kind];

	if (!place->time_subject) {
		const char *label = kind == MEMSETS ? "set" : copy_kind_label(kind);

		place->time_subject = named(p, PROFILE_COPY, label);
		place->bytes_subject = named(p, PROFILE_BYTES, label);
	}
	profile_add(p, place->time_subject, batch, (double)work->duration_ns, 1.0);
	profile_add(p, place->bytes_subject, batch, (double)work->bytes, 1.0);
	profile_add(p, TOTAL_COPIES, batch, (double)work->duration_ns, 1.0);
	profile_add(p, TOTAL_BYTES, batch, (double)work->bytes, 1.0);
}

static void add_work(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch)
{
	struct profile *p = sink->state;
	int batch = windows_batch(&p->windows, launch ? launch->enter_ns : work->start_ns);
	struct cell *cell;

	xt_grow(p->cells, p->cell_capacity, ((size_t)process->total + 1) * CELLS);
	cell = &p->cells[(size_t)process->total * CELLS +
			 (batch < 0 ? PROFILE_BATCHES : (size_t)batch)];
	cell->value += work->duration_ns;
	cell->count++;
	if (work->kind != WORK_KERNEL) {
		add_bytes(p, process, work, batch);
		return;
	}
	if (launch && work->start_ns > launch->enter_ns && !work->graph_node)
		profile_add(p, TOTAL_LATENCY, batch, (double)(work->start_ns - launch->enter_ns),
			    1.0);
}

static void add_stretch(struct sink *sink, const struct process *process,
			const struct stretch *stretch)
{
	struct profile *p = sink->state;
	uint64_t *until_ns =
		&p->busy_until_ns[stretch->device < DEVICES_MAX ? stretch->device : DEVICES_MAX];
	uint64_t from_ns = larger(stretch->start_ns, *until_ns);

	note_end(p, process, stretch->end_ns);
	if (stretch->end_ns > from_ns) {
		add_at(p, TOTAL_GPU_BUSY, from_ns, (double)(stretch->end_ns - from_ns), 1.0);
		*until_ns = stretch->end_ns;
	}
	for (int class = 0; stretch->gap.exists && class < IDLE_CLASSES; class ++) {
		double idle_ns = (double)stretch->gap.idle_ns[class];

		if (!stretch->gap.idle_ns[class])
			continue;
		if (!p->idle[class])
			p->idle[class] = named(p, PROFILE_IDLE, idle_labels[class]);
		add_at(p, p->idle[class], stretch->gap.from_ns, idle_ns, 1.0);
		add_at(p, TOTAL_GPU_IDLE, stretch->gap.from_ns, idle_ns, 1.0);
	}
}

/* Adds the sums of each batch to a subject. */
static void fold(struct profile *p, enum profile_level level, uint32_t id, const struct cell *cells)
{
	uint32_t place = subjects_index(&p->subjects, level, id);

	for (int b = 0; b < CELLS; b++)
		profile_add(p, place, b == PROFILE_BATCHES ? -1 : b, (double)cells[b].value,
			    (double)cells[b].count);
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	struct profile *p = sink->state;
	const struct model *model = process->model;
	const struct path_node *leaf = &process->paths->nodes[node];
	const struct cell *cells;
	uint32_t range = total->owner.range;

	if (!total->weights[WEIGHT_COUNT] || (size_t)process->total * CELLS >= p->cell_capacity)
		return;
	cells = &p->cells[(size_t)process->total * CELLS];
	fold(p, PROFILE_PATH, copy_path(p, process, node), cells);
	fold(p, PROFILE_TOTAL, TOTAL_GPU_TIME, cells);
	fold(p, PROFILE_KERNEL, copy_name(p, process, leaf->name), cells);
	if (range >= model->ranges.nodes.count)
		return;
	for (; range != RANGE_NONE; range = model->ranges.nodes.list[range].parent)
		fold(p, PROFILE_RANGE, range_name(p, model, range), cells);
}

static void end_process(struct sink *sink, const struct process *process)
{
	struct profile *p = sink->state;
	struct windows *kept = &p->processes[p->process_count - 1].windows;

	(void)process;
	*kept = p->windows;
	kept->starts_ns = NULL;
	windows_free(&p->windows);
}

/* Adds the peaks of devices with the same number in all processes. */
static void add_memory(struct profile *p, const struct run *run)
{
	for (size_t m = 0; m < run->sums->memory.count; m++) {
		const struct memory_row *row = &run->sums->memory.list[m];
		const char *label = names_text(&run->paths.names, row->label, NULL);
		const char *of = strstr(label, " of ");
		size_t length = of ? (size_t)(of - label) : strlen(label);
		double peak = (double)row->pool.peak_bytes;
		uint32_t name = names_intern(&p->tree.names, label, length);
		uint32_t place = subjects_index(&p->subjects, PROFILE_MEMORY, name);
		struct subject *subject = &p->subjects.list[place];

		subject->whole_value += peak;
		subject->whole_count += (double)row->pool.alloc_count;
		if (strncmp(label, "host", length) != 0)
			p->subjects.list[TOTAL_PEAK_MEMORY].whole_value += peak;
	}
}

#define LISTED_NAME(id, name) name,
static const char *const level_names[] = {PROFILE_LEVEL_LIST(LISTED_NAME)};
static const char *const total_names[] = {PROFILE_TOTAL_LIST(LISTED_NAME)};

static const char *const source_names[] = {[ITERATIONS_NONE] = "none",
					   [ITERATIONS_RANGE] = "nvtx",
					   [ITERATIONS_OPTIMIZER] = "optimizer",
					   [ITERATIONS_PERIOD] = "period",
					   [ITERATIONS_MISSING] = "missing"};

static void put_processes(struct json *json, const struct profile *p)
{
	json_begin_array(json, "processes");
	for (size_t i = 0; i < p->process_count; i++) {
		const struct profile_process *process = &p->processes[i];
		const struct windows *windows = &process->windows;

		json_begin_object(json, NULL);
		json_string(json, "name", process->name);
		json_string(json, "command", process->command);
		json_string(json, "host", process->log->host);
		json_string(json, "driver", process->driver);
		json_string(json, "cupti", process->cupti);
		json_u64(json, "start_realtime_ns", process->log->header.start_realtime_ns);
		json_string(json, "iterations", source_names[windows->source]);
		json_string(json, "iteration_name", windows->name);
		json_u64(json, "found_count", windows->found_count);
		json_u64(json, "warmup_count", windows->warmup_count);
		json_u64(json, "used_count", windows->used_count);
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_array(json, "devices");
	for (size_t d = 0; d < p->device_count; d++) {
		json_begin_object(json, NULL);
		json_u64(json, "device", p->devices[d].number);
		json_string(json, "name", p->devices[d].name);
		json_string(json, "uuid", p->devices[d].uuid);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_trust(struct json *json, const struct run *run)
{
	const struct trust *trust = run->trust;

	json_begin_object(json, "trust");
	json_string(json, "word", trust_level_name(trust->level));
	json_u64(json, "gpu_time_ns", run->sums->events.work.gpu_ns);
	json_u64(json, "attributed_gpu_time_ns", run->sums->events.work.attributed_gpu_ns);
	json_u64(json, "paused_ns", run->sums->recording.paused_ns);
	json_begin_array(json, "warnings");
	/* The warnings follow the reasons, so none has to refer to them. */
	for (size_t r = 0; r < trust->reason_count; r++)
		if (trust->reasons[r] != trust->anomaly_reason)
			json_string(json, NULL, trust->reasons[r]);
	for (size_t w = 0; w < run->report->warnings.count; w++)
		json_string(json, NULL, run->report->warnings.list[w]);
	json_end_array(json);
	json_end_object(json);
}

/*
 * Writes the names, and the nodes as pairs of parent and name. Node 0 is the root and has neither.
 */
static void put_tree(struct json *json, const struct paths *tree)
{
	json_begin_array(json, "names");
	for (uint32_t n = 0; n < tree->names.count; n++) {
		size_t length;
		const char *text = names_text(&tree->names, n, &length);

		json_text(json, NULL, text, length);
	}
	json_end_array(json);
	json_begin_array(json, "nodes");
	for (uint32_t n = 1; n < tree->node_count; n++) {
		json_u64(json, NULL, tree->nodes[n].parent);
		json_u64(json, NULL, tree->nodes[n].name);
	}
	json_end_array(json);
}

static void put_error(struct json *json, double error, double mean)
{
	json_rounded(json, NULL, mean != 0.0 ? error / fabs(mean) : error, ERROR_DIGITS);
}

static void profile_put_row(struct json *json, const struct subject *s, uint32_t batch_count,
			    const double *factors)
{
	struct profile_stats stats = profile_stats(s, batch_count, factors);

	json_begin_array(json, NULL);
	if (s->level == PROFILE_TOTAL)
		json_string(json, NULL, total_names[s->id]);
	else
		json_u64(json, NULL, s->id);
	json_rounded(json, NULL, s->whole_value, 17);
	json_rounded(json, NULL, s->whole_count, 17);
	json_rounded(json, NULL, batch_count ? stats.value.mean : NAN, MEAN_DIGITS);
	json_rounded(json, NULL, batch_count ? stats.count.mean : NAN, MEAN_DIGITS);
	put_error(json, stats.value.error, stats.value.mean);
	put_error(json, stats.value.residual, stats.value.mean);
	put_error(json, stats.count.error, stats.count.mean);
	put_error(json, stats.each.error, stats.each.mean);
	put_error(json, stats.each.residual, stats.each.mean);
	json_rounded(json, NULL,
		     stats.value.mean > 0.0 ? stats.value.typical / stats.value.mean : 1.0,
		     MEAN_DIGITS);
	json_end_array(json);
}

static void put_levels(struct json *json, const struct profile *p, const double *factors)
{
	static const char *const columns[] = {
		"id",	      "whole_value",   "whole_count",	 "value",
		"count",      "value_error",   "value_residual", "count_error",
		"each_error", "each_residual", "typical"};
	uint32_t batch_count = p->is_mixed ? 0 : p->batch_count;

	json_strings(json, "columns", columns, sizeof(columns) / sizeof(columns[0]));
	for (int level = 0; level < PROFILE_LEVELS; level++) {
		json_begin_array(json, level_names[level]);
		for (size_t i = 0; i < p->subjects.count; i++)
			if ((int)p->subjects.list[i].level == level)
				profile_put_row(json, &p->subjects.list[i], batch_count, factors);
		json_end_array(json);
	}
}

static void put_profile(struct json *json, const struct profile *p, const struct run *run)
{
	char part[WANTED_BYTES];
	double factors[PROFILE_BATCHES];

	profile_factors(&p->subjects, p->batch_count, factors);
	json_begin_object(json, NULL);
	json_string(json, "format", "xtrace-profile");
	json_u64(json, "version", PROFILE_VERSION);
	json_string(json, "generator", "xtrace " XTRACE_VERSION);
	json_bool(json, "simulated_gpu", run->sums->recording.has_simulated_gpu);
	if (run->selection) {
		wanted_describe(&run->settings->wanted, part, sizeof(part));
		json_string(json, "selection", part);
	}
	json_u64(json, "batch_count", p->is_mixed ? 0 : p->batch_count);
	put_processes(json, p);
	put_trust(json, run);
	put_levels(json, p, factors);
	put_tree(json, &p->tree);
	json_end_object(json);
}

static void profile_end(struct sink *sink, const struct run *run)
{
	struct json json = {.out = &sink->out, .lines_depth = 2};
	struct profile *p = sink->state;

	add_memory(p, run);
	if (p->last_ns > p->first_ns)
		p->subjects.list[TOTAL_WALL].whole_value = (double)(p->last_ns - p->first_ns);
	put_profile(&json, p, run);
	/* The document says so itself, and the log is complete. */
	if (p->lacks_iterations && !p->has_iterations)
		report_warn(run->report,
			    "there is no NVTX range \"%s\" that was opened %d times or "
			    "more: the profile has no iterations",
			    sink->settings->iterations.iteration, ITERATIONS_MIN);
}

static void profile_free_state(struct sink *sink)
{
	struct profile *p = sink->state;

	windows_free(&p->windows);
	subjects_free(&p->subjects);
	paths_free(&p->tree);
	arena_free(p->texts);
	free_all(p->processes, p->devices, p->cells, p->call_places, p->waits);
}

const struct exporter exporter_profile = {
	.name = "profile",
	.what = "Write what xtrace diff compares: sums by call path and their variation from "
		"iteration to iteration",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_ITERATIONS,
	.state_bytes = sizeof(struct profile),
	.begin = profile_begin,
	.process = add_process,
	.on.call = profile_add_call,
	.on.work = add_work,
	.on.stretch = add_stretch,
	.total = add_total,
	.process_end = end_process,
	.end = profile_end,
	.free = profile_free_state,
};
