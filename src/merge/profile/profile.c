/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run profile: what `xtrace diff` needs to know about a run. Costs are summed by call path,
 * kernel, function and so on for each batch of iterations. Only their means and standard errors are
 * written.
 */
#include "merge/profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/naming/joined_paths.h"
#include "merge/base/labels.h"
#include "merge/profile/profile_iterations.h"
#include "merge/sums/reading.h"
#include "merge/sums/sums.h"

#define CELLS	      (PROFILE_BATCHES + 1) /* one for each batch, and one for time outside the batches */
#define MEMSETS_INDEX COPY_KINDS
#define DEVICES_MAX   TIMELINE_DEVICES_MAX

static int begin(struct sink *sink)
{
	struct profile *p = xt_calloc(1, sizeof(*p));

	sink->state = p;
	paths_init(&p->tree);
	p->busy_until_ns = xt_calloc(DEVICES_MAX + 1, sizeof(*p->busy_until_ns));
	p->copy_places = xt_calloc(COPY_KINDS + 1, sizeof(*p->copy_places));
	p->bytes_places = xt_calloc(COPY_KINDS + 1, sizeof(*p->bytes_places));
	for (uint32_t t = 0; t < PROFILE_TOTALS; t++)
		p->totals[t] = subjects_index(&p->subjects, PROFILE_TOTAL, t);
	return 0;
}

static uint32_t intern(struct profile *p, const char *text)
{
	return names_intern(&p->tree.names, text, strlen(text));
}

static struct subject *named(struct profile *p, enum profile_level level, uint32_t name)
{
	uint32_t place = subjects_index(&p->subjects, level, name); /* moves the list */

	return &p->subjects.list[place];
}

static struct subject *named_text(struct profile *p, enum profile_level level, const char *text)
{
	return named(p, level, intern(p, text));
}

/* Like subject_add(), for the subject at this index and the batch at this time. */
static void add_at(struct profile *p, uint32_t place, uint64_t time_ns, double value, double count)
{
	int batch = windows_batch(&p->windows, time_ns);

	subject_add(&p->subjects.list[place], batch, batch < 0 ? 0.0 : p->shares[batch], value,
		    count);
}

/* A moment until which the run lasted. */
static void note_end(struct profile *p, const struct process *process, uint64_t end_ns)
{
	int64_t here_ns = (int64_t)(end_ns - (uint64_t)process->origin_ns);

	if (here_ns > p->last_ns)
		p->last_ns = here_ns;
}

/* The run lasted from the start of its first process on. */
static void note_start(struct profile *p, const struct process *process)
{
	uint64_t start_ns = model_process_start_ns(process->model, &process->log->header);
	int64_t here_ns = (int64_t)(start_ns - (uint64_t)process->origin_ns);

	if (!p->process_count || here_ns < p->first_ns)
		p->first_ns = here_ns;
}

/* Adds the time from each iteration to the next. */
static void add_walls(struct profile *p)
{
	const struct windows *w = &p->windows;

	for (size_t i = 0; i < w->found_count; i++) {
		uint64_t end_ns = i + 1 < w->found_count ? w->starts_ns[i + 1] : w->end_ns;

		add_at(p, p->totals[TOTAL_WALL], w->starts_ns[i],
		       (double)(end_ns - w->starts_ns[i]), 1.0);
	}
}

/* Names of the nested ranges, outermost first, separated by semicolons. */
static char *range_text(const struct model *model, uint32_t node)
{
	const struct range_node *row = &model->ranges.nodes[node];
	char *outer = row->parent == RANGE_NONE ? NULL : range_text(model, row->parent);
	char *name = iterations_range_name(model, row);
	char *text = xt_asprintf("%s%s%s", outer ? outer : "", outer ? ";" : "", name);

	free(outer);
	free(name);
	return text;
}

static uint32_t range_subject(struct profile *p, enum profile_level level,
			      const struct model *model, uint32_t node)
{
	char *text = range_text(model, node);
	uint32_t name = intern(p, text);

	free(text);
	return subjects_index(&p->subjects, level, name);
}

static bool is_within(const struct model *model, uint32_t state, uint32_t node)
{
	for (; state != RANGE_NONE; state = model->ranges.nodes[state].parent)
		if (state == node)
			return true;
	return false;
}

/* Adds how long threads were in ranges and how often they entered them. */
static void add_spans(struct profile *p, const struct model *model)
{
	const struct ranges *ranges = &model->ranges;
	uint32_t *places = xt_calloc(ranges->node_count + 1, sizeof(*places));

	for (uint32_t n = 1; n < ranges->node_count; n++)
		places[n] = range_subject(p, PROFILE_SPAN, model, n);
	for (uint32_t t = 0; t < ranges->thread_count; t++) {
		struct range_history history = ranges_history(ranges, t);
		uint32_t before = RANGE_NONE;

		for (size_t i = 0; i + 1 < history.count; i++) {
			uint32_t state = history.states[i];

			for (uint32_t n = state; n != RANGE_NONE; n = ranges->nodes[n].parent)
				add_at(p, places[n], history.times_ns[i],
				       (double)(history.times_ns[i + 1] - history.times_ns[i]),
				       !is_within(model, before, n));
			before = state;
		}
	}
	free(places);
}

static char *copy_meta(const struct model *model, const char *key)
{
	return xt_strdup(model_meta(model, key));
}

static void add_devices(struct profile *p, const struct model *model)
{
	for (size_t s = 1; s < model->streams.count; s++) {
		const struct stream *stream = &model->streams.rows[s];
		struct profile_device *device;
		char key[32];
		size_t d = 0;

		while (d < p->device_count && p->devices[d].number != stream->device)
			d++;
		if (!stream->defined || d < p->device_count)
			continue;
		device = xt_new(p->devices, p->device_count, p->device_capacity);
		device->number = stream->device;
		snprintf(key, sizeof(key), "gpu.%u.name", stream->device);
		device->name = copy_meta(model, key);
		snprintf(key, sizeof(key), "gpu.%u.uuid", stream->device);
		device->uuid = copy_meta(model, key);
	}
}

static void describe(struct profile *p, const struct process *process)
{
	const struct model *model = process->model;
	const struct windows *w = &p->windows;
	struct profile_process *row;

	row = xt_new(p->processes, p->process_count, p->process_capacity);
	*row = (struct profile_process){
		.name = xt_strdup(model_process_name(model)),
		.command = copy_meta(model, "process.cmdline"),
		.driver = copy_meta(model, "cuda.driver_version"),
		.cupti = copy_meta(model, "cupti.version"),
		.host = xt_strdup(process->log->host),
		.start_realtime_ns = process->log->header.start_realtime_ns,
		.source = w->source,
		.iteration = xt_strdup(w->name ? w->name : ""),
		.found_count = w->found_count,
		.warmup_count = w->warmup_count,
		.used_count = w->used_count,
		.batch_count = w->batch_count,
	};
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
		p->shares[b] = w->source == WINDOWS_SLICES ? w->batch_count : 1.0 / w->lengths[b];
	if (!w->batch_count)
		return;
	if (p->batch_count && p->batch_count != w->batch_count)
		p->is_mixed = true;
	if (w->batch_count > p->batch_count)
		p->batch_count = w->batch_count;
}

static void add_process(struct sink *sink, const struct process *process)
{
	struct profile *p = sink->state;
	const struct model *model = process->model;
	int error = iterations_find(&p->windows, model, process->log->path,
				    &sink->settings->iterations);
	size_t stacks = model_stack_limit(model) + 1, apis = model->apis.count + 1;

	p->lacks_iterations |= error == -ENOENT;
	p->has_iterations |= p->windows.source == WINDOWS_RANGE;
	if (error && error != -ENOENT)
		xt_out_of_memory(0);
	settle_batches(p);
	free(p->call_places);
	free(p->cells);
	p->cells = NULL;
	p->cell_capacity = 0;
	p->call_places = xt_calloc(stacks, sizeof(*p->call_places));
	p->waits = xt_reallocarray(p->waits, apis, 1);
	for (size_t a = 0; a < model->apis.count; a++)
		p->waits[a] = threads_state_of(model, &model->apis.rows[a]) != THREAD_BUSY;
	memset(p->busy_until_ns, 0, (DEVICES_MAX + 1) * sizeof(*p->busy_until_ns));
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

static uint32_t api_name(struct profile *p, const struct process *process,
			 const struct launch *call)
{
	uint32_t name = frames_api_name(process->frames, call->stack, call->api);
	size_t length;
	const char *text = names_text(&process->paths->names, name, &length);

	return names_intern(&p->tree.names, text, length);
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
	uint32_t name = api_name(p, process, call), node, place;

	place = subjects_index(&p->subjects, PROFILE_API, name);
	*known = (struct call_place){.api = call->api, .api_subject = place + 1};
	if (!is_shown(p, process->model, call->api))
		return;
	node = has_stack ? copy_path(p, process, joined_paths_node(process->frames, call->stack))
			 : paths_child(&p->tree, PATH_ROOT, intern(p, FRAME_UNATTRIBUTED));
	node = paths_child(&p->tree, node, name);
	place = subjects_index(&p->subjects, PROFILE_CALL, node);
	known->path_subject = place + 1;
}

static void add_call(struct sink *sink, const struct process *process, const struct launch *call,
		     uint64_t duration_ns, uint64_t result)
{
	struct profile *p = sink->state;
	uint32_t class = process->model->apis.rows[call->api].class;
	bool has_stack = frames_has_stack(process->frames, call->stack);
	struct call_place *known = &p->call_places[has_stack ? call->stack : 0];

	(void)result;
	note_end(p, process, call->enter_ns + duration_ns);
	if (!known->api_subject || known->api != call->api)
		settle_call(p, process, call, known);
	add_at(p, known->api_subject - 1, call->enter_ns, (double)duration_ns, 1.0);
	if (known->path_subject)
		add_at(p, known->path_subject - 1, call->enter_ns, (double)duration_ns, 1.0);
	if (class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH)
		add_at(p, p->totals[TOTAL_LAUNCHES], call->enter_ns, 1.0, 1.0);
	if (p->waits[call->api])
		add_at(p, p->totals[TOTAL_WAITS], call->enter_ns, (double)duration_ns, 1.0);
}

static void add_bytes(struct profile *p, const struct process *process, const struct work *work,
		      int batch)
{
	const struct model *model = process->model;
	uint32_t shape = work->shape < model->copy_shapes.count ? work->shape : 0;
	uint32_t kind = work->kind == WORK_MEMSET
				? MEMSETS_INDEX
				: label_index(model->copy_shapes.rows[shape].kind, COPY_KINDS);
	double share = batch < 0 ? 0.0 : p->shares[batch];

	if (!p->copy_places[kind]) {
		const char *label = kind == MEMSETS_INDEX ? "set" : copy_kind_label(kind);
		struct subject *copies = named_text(p, PROFILE_COPY, label), *bytes;

		p->copy_places[kind] = (uint32_t)(copies - p->subjects.list) + 1;
		bytes = named_text(p, PROFILE_BYTES, label);
		p->bytes_places[kind] = (uint32_t)(bytes - p->subjects.list) + 1;
	}
	subject_add(&p->subjects.list[p->copy_places[kind] - 1], batch, share,
		    (double)work->duration_ns, 1.0);
	subject_add(&p->subjects.list[p->bytes_places[kind] - 1], batch, share, (double)work->bytes,
		    1.0);
	subject_add(&p->subjects.list[p->totals[TOTAL_COPIES]], batch, share,
		    (double)work->duration_ns, 1.0);
	subject_add(&p->subjects.list[p->totals[TOTAL_BYTES]], batch, share, (double)work->bytes,
		    1.0);
}

static void add_work(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch)
{
	struct profile *p = sink->state;
	int batch = windows_batch(&p->windows, launch ? launch->enter_ns : work->start_ns);
	double share = batch < 0 ? 0.0 : p->shares[batch];
	struct cell *cell;

	xt_grow(&p->cells, &p->cell_capacity, ((size_t)process->total + 1) * CELLS,
		sizeof(*p->cells));
	cell = &p->cells[(size_t)process->total * CELLS +
			 (batch < 0 ? PROFILE_BATCHES : (size_t)batch)];
	cell->value += work->duration_ns;
	cell->count++;
	if (work->kind != WORK_KERNEL) {
		add_bytes(p, process, work, batch);
		return;
	}
	if (launch && work->start_ns > launch->enter_ns && !work->graph_node)
		subject_add(&p->subjects.list[p->totals[TOTAL_LATENCY]], batch, share,
			    (double)(work->start_ns - launch->enter_ns), 1.0);
}

static void add_stretch(struct sink *sink, const struct process *process,
			const struct stretch *stretch)
{
	struct profile *p = sink->state;
	uint64_t *until_ns =
		&p->busy_until_ns[stretch->device < DEVICES_MAX ? stretch->device : DEVICES_MAX];
	uint64_t from_ns = stretch->start_ns > *until_ns ? stretch->start_ns : *until_ns;

	note_end(p, process, stretch->end_ns);
	if (stretch->end_ns > from_ns) {
		add_at(p, p->totals[TOTAL_GPU_BUSY], from_ns, (double)(stretch->end_ns - from_ns),
		       1.0);
		*until_ns = stretch->end_ns;
	}
	for (int class = 0; stretch->has_gap && class < IDLE_CLASSES; class ++) {
		double idle_ns = (double)stretch->idle_ns[class];

		if (!stretch->idle_ns[class])
			continue;
		if (!p->idle[class]) {
			struct subject *idle = named_text(p, PROFILE_IDLE, idle_labels[class]);

			p->idle[class] = (uint32_t)(idle - p->subjects.list) + 1;
		}
		add_at(p, p->idle[class] - 1, stretch->gap_from_ns, idle_ns, 1.0);
		add_at(p, p->totals[TOTAL_GPU_IDLE], stretch->gap_from_ns, idle_ns, 1.0);
	}
}

/* Adds the sums of each batch to the subject of a total. */
static void fold(struct profile *p, struct subject *subject, const struct cell *cells)
{
	for (int b = 0; b < CELLS; b++)
		subject_add(subject, b == PROFILE_BATCHES ? -1 : b,
			    b == PROFILE_BATCHES ? 0.0 : p->shares[b], (double)cells[b].value,
			    (double)cells[b].count);
}

static void fold_ranges(struct profile *p, const struct model *model, uint32_t range,
			const struct cell *cells)
{
	for (; range != RANGE_NONE; range = model->ranges.nodes[range].parent) {
		uint32_t place = range_subject(p, PROFILE_RANGE, model, range);

		fold(p, place == UINT32_MAX ? NULL : &p->subjects.list[place], cells);
	}
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	struct profile *p = sink->state;
	const struct path_node *leaf = &process->paths->nodes[node];
	const struct cell *cells;
	uint32_t copy, place, range = total->owner.range;
	size_t length;
	const char *text;

	if (!total->weights[WEIGHT_COUNT] || (size_t)process->total * CELLS >= p->cell_capacity)
		return;
	cells = &p->cells[(size_t)process->total * CELLS];
	copy = copy_path(p, process, node);
	place = subjects_index(&p->subjects, PROFILE_PATH, copy);
	fold(p, place == UINT32_MAX ? NULL : &p->subjects.list[place], cells);
	fold(p, &p->subjects.list[p->totals[TOTAL_GPU_TIME]], cells);
	text = names_text(&process->paths->names, leaf->name, &length);
	fold(p, named(p, PROFILE_KERNEL, names_intern(&p->tree.names, text, length)), cells);
	if (range < process->model->ranges.node_count)
		fold_ranges(p, process->model, range, cells);
}

static void end_process(struct sink *sink, const struct process *process)
{
	struct profile *p = sink->state;

	(void)process;
	windows_free(&p->windows);
}

/* Adds the peaks of devices with the same number in all processes. */
static void add_memory(struct profile *p, const struct run *run)
{
	for (size_t m = 0; m < run->sums->memory.row_count; m++) {
		const struct memory_row *row = &run->sums->memory.rows[m];
		const char *label = names_text(&run->paths.names, row->label, NULL);
		const char *of = strstr(label, " of ");
		size_t length = of ? (size_t)(of - label) : strlen(label);
		double peak = (double)row->pool.peak_bytes;
		struct subject *subject =
			named(p, PROFILE_MEMORY, names_intern(&p->tree.names, label, length));

		subject->whole_value += peak;
		subject->whole_count += (double)row->pool.alloc_count;
		if (strncmp(label, "host", length) != 0)
			p->subjects.list[p->totals[TOTAL_PEAK_MEMORY]].whole_value += peak;
	}
}

static void end(struct sink *sink, const struct run *run)
{
	struct json json = {.out = &sink->out, .lines_depth = 2};
	struct profile *p = sink->state;

	add_memory(p, run);
	if (p->last_ns > p->first_ns)
		p->subjects.list[p->totals[TOTAL_WALL]].whole_value =
			(double)(p->last_ns - p->first_ns);
	profile_put(&json, p, run);
	/* The document says so itself, and the log is complete. */
	if (p->lacks_iterations && !p->has_iterations)
		report_warn(run->report,
			    "there is no NVTX range \"%s\" that was opened %d times or "
			    "more: the profile has no iterations",
			    sink->settings->iterations.iteration, PROFILE_ITERATIONS_MIN);
}

static void free_state(struct sink *sink)
{
	struct profile *p = sink->state;

	if (!p)
		return;
	for (size_t i = 0; i < p->process_count; i++) {
		free_all(p->processes[i].name, p->processes[i].command, p->processes[i].driver,
			 p->processes[i].cupti, p->processes[i].host, p->processes[i].iteration);
	}
	for (size_t d = 0; d < p->device_count; d++) {
		free(p->devices[d].name);
		free(p->devices[d].uuid);
	}
	windows_free(&p->windows);
	subjects_free(&p->subjects);
	paths_free(&p->tree);
	free_all(p->processes, p->devices, p->cells, p->call_places, p->copy_places,
		 p->bytes_places, p->busy_until_ns, p->waits, p);
	sink->state = NULL;
}

const struct exporter exporter_profile = {
	.name = "profile",
	.what = "Write what xtrace diff compares: sums by call path and their variation from "
		"iteration "
		"to "
		"iteration",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_ITERATIONS,
	.begin = begin,
	.process = add_process,
	.on.call = add_call,
	.on.work = add_work,
	.on.stretch = add_stretch,
	.total = add_total,
	.process_end = end_process,
	.end = end,
	.free = free_state,
};
