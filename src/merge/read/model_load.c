/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass over a log: fills a model, then sorts and completes its tables.
 */
#include "merge/read/model_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/model_rows.h"
#include "merge/read/xla_join.h"

#define NODES_UPDATED_MIN (1u << 20) /* rows that graph updates may add to any log */

COMPARE_BY(compare_modules, struct module, UP(start) UP(load_ns) UP(id))

COMPARE_BY(compare_symbols, struct embedded_symbol, UP(module) UP(start))

COMPARE_BY(compare_sources, struct embedded_source, UP(module) UP(address) UP(order))

/* Turns "./plugin.so" into "/folder/plugin.so". */
static uint32_t join_paths(struct model *model, const char *folder, const char *path)
{
	uint32_t name;
	char *whole;

	while (!strncmp(path, "./", 2))
		path += 2 + strspn(path + 2, "/");
	whole = xt_asprintf("%s/%s", strcmp(folder, "/") ? folder : "", path);
	name = names_intern(&model->names, whole, strlen(whole));
	free(whole);
	return name;
}

/*
 * Completes the paths in the log of a killed process: the path of the executable, and relative
 * paths such as "./plugin.so".
 */
static void resolve_paths(struct model *model)
{
	for (size_t m = 1; m < model->modules.count; m++) {
		const char *folder = model_meta(model, "process.cwd");
		const char *own = model_meta(model, "process.exe");
		struct module *module = &model->modules.rows[m];
		const char *path = names_text(&model->names, module->path, NULL);

		if (!path[0])
			module->path = names_intern(&model->names, own, strlen(own));
		else if (path[0] != '/' && strchr(path, '/') && folder[0] == '/')
			module->path = join_paths(model, folder, path);
	}
}

/* Sorts the modules. Stores for each the largest end so far, which bounds the search. */
static void index_modules(struct model *model)
{
	size_t count = model->modules.count;
	uint64_t reach = 0;

	qsort(model->modules.rows + 1, count - 1, sizeof(*model->modules.rows), compare_modules);
	model->module_reach = xt_calloc(count, sizeof(*model->module_reach));
	for (size_t m = 1; m < count; m++) {
		if (model->modules.rows[m].end > reach)
			reach = model->modules.rows[m].end;
		model->module_reach[m] = reach;
	}
	for (size_t m = count; m-- > 1;)
		model->module_places[model->modules.rows[m].id] = (uint32_t)m;
}

/* Prefers a name that the program gave through NVTX to the system's name. */
static void name_threads(struct model *model)
{
	for (size_t t = 1; t < model->threads.count; t++) {
		struct thread *thread = &model->threads.rows[t];
		uint32_t text = range_names_find(&model->thread_names, 0, thread->tid);

		if (thread->tid && text && text < model->strings.count)
			thread->name = model->strings.rows[text];
	}
}

/* Creates row 0, the undefined one. */
#define BEGIN_TABLE(table, room)                                                                   \
	((table).count = 1,                                                                        \
	 xt_grow(&(table).rows, &(table).capacity, (room), sizeof(*(table).rows)))

/*
 * Samples are found by the kernel's thread id, which the traced log of the process has too. Periods
 * vary by a fifth: a sample reaches far enough to meet the next one, if none is missing.
 */
static void index_cpu_samples(struct model *model)
{
	struct cpu_samples *samples = &model->cpu_samples;

	for (size_t s = 0; s < samples->count; s++) {
		uint32_t thread = samples->rows[s].thread;

		samples->rows[s].tid =
			thread < model->threads.count ? model->threads.rows[thread].tid : 0;
	}
	cpu_samples_sort(samples, cpu_period_ns(model) * 3 / 4);
}

/* A log with a size limit may lack its earliest events. */
static void leave_out_beginning(struct model *model)
{
	model->from_ns = strtoull(model_meta(model, "log.from"), NULL, 10);
	if (model->from_ns <= model->start_ns)
		return;
	pauses_leave_out(&model->pauses, model->start_ns, model->from_ns);
}

static int compare_node_times(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/*
 * Gives nodes of CUDA graphs that were captured in a backward pass their joined stacks. Rows of
 * several threads are not in order, so sort them first.
 */
static void join_graph_nodes(struct model *model)
{
	struct nodes *nodes = &model->nodes;
	uint32_t *order = xt_calloc(nodes->count + 1, sizeof(*order));
	size_t count = 0;

	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].autograd)
			order[count++] = (uint32_t)n;
	qsort_r(order, count, sizeof(*order), compare_node_times, nodes->rows);
	for (size_t i = 0; i < count; i++) {
		struct node *node = &nodes->rows[order[i]];

		autograd_join(&model->autograd,
			      &(struct autograd_call){
				      .stack = node->stack,
				      .state = node->autograd,
				      .sequence = node->sequence,
				      .node_sequence = node->node_sequence,
			      },
			      &node->stack);
	}
	autograd_begin_events(&model->autograd);
	free(order);
}

int model_load(struct model **model_out, struct xt_reader *reader)
{
	struct model *model = xt_calloc(1, sizeof(*model));
	const struct xt_chunk *chunk;
	char why[XT_REFUSAL_BYTES];
	int error = 0;

	*model_out = NULL;
	model->pid = xt_reader_header(reader)->pid;
	model->start_ns = xt_reader_header(reader)->start_monotonic_ns;
	model->start_realtime_ns = xt_reader_header(reader)->start_realtime_ns;
	names_init(&model->names);
	BEGIN_TABLE(model->strings, 1);
	BEGIN_TABLE(model->stacks, 1);
	BEGIN_TABLE(model->threads, 1);
	BEGIN_TABLE(model->streams, 1);
	BEGIN_TABLE(model->shapes, 1);
	BEGIN_TABLE(model->copy_shapes, 1);
	BEGIN_TABLE(model->python_frames, 1);
	BEGIN_TABLE(model->modules, 1);
	BEGIN_TABLE(model->apis, 1);
	BEGIN_TABLE(model->compiled, 1);
	BEGIN_TABLE(model->symbols, 1);
	BEGIN_TABLE(model->sources, 1);
	BEGIN_TABLE(model->meta, MODEL_PAIRS_MAX);
	BEGIN_TABLE(model->account, MODEL_PAIRS_MAX);
	model->meta.count = model->account.count = 0; /* not indexed by id */
	while (!error && (chunk = xt_reader_next(reader, model_row_kinds()))) {
		model_add_rows(model, chunk);
		error = 0;
	}
	if (!error && xt_reader_refused(reader, why))
		error = -EFBIG;
	if (error)
		goto out;
	model->damage = *xt_reader_damage(reader);
	model->nodes.updated_max = NODES_UPDATED_MIN + xt_reader_event_rows(reader);
	qsort(model->symbols.rows + 1, model->symbols.count - 1, sizeof(*model->symbols.rows),
	      compare_symbols);
	qsort(model->sources.rows + 1, model->sources.count - 1, sizeof(*model->sources.rows),
	      compare_sources);
	index_modules(model);
	resolve_paths(model);
	range_names_index(&model->category_names);
	range_names_index(&model->thread_names);
	range_names_index(&model->device_names);
	range_names_index(&model->context_names);
	range_names_index(&model->stream_names);
	name_threads(model);
	ranges_index(&model->ranges);
	collective_calls_index(&model->collective_calls, model);
	xla_join(model);
	error = 0;
	/* A node belongs to the range in which it was created. */
	for (size_t n = 0; n < model->nodes.count; n++) {
		struct node *node = &model->nodes.rows[n];

		node->range = model_range_at(
			model, &(struct range_call){node->thread, node->stack, node->time_ns},
			node->autograd);
		collective_calls_capture(&model->collective_calls, node->thread, node->time_ns);
	}
	/* The tracer read autograd's memory until it found the layout to be unknown. */
	if (model_meta(model, "torch.missing")[0])
		autograd_free(&model->autograd);
	model->autograd.first_joined = (uint32_t)model->stacks.count;
	if (model->autograd.state_count)
		join_graph_nodes(model);
	nodes_index(&model->nodes);
	leave_out_beginning(model);
	index_cpu_samples(model);
	pauses_index(&model->pauses);
	pauses_index(&model->stops);
	if (model->renumbered_ns.count)
		qsort(model->renumbered_ns.rows, model->renumbered_ns.count,
		      sizeof(*model->renumbered_ns.rows), compare_u64);
out:
	if (error)
		model_free(model);
	else
		*model_out = model;
	return error;
}

static struct xt_reader *open_log(const struct input *log, struct report *report, uint64_t cut_at)
{
	struct xt_reader *reader;

	if (report)
		reader = inputs_open(log->path, report);
	else if (xt_reader_open(log->path, &reader) != XT_OPEN_OK)
		reader = NULL;
	if (reader && cut_at)
		xt_reader_cut(reader, cut_at);
	return reader;
}

int model_open(const struct input *log, struct report *report, struct model **model_out,
	       struct xt_reader **reader_out)
{
	struct xt_reader *reader = open_log(log, report, 0);
	uint64_t read_bytes, all_bytes;
	int error;

	*model_out = NULL;
	*reader_out = NULL;
	if (!reader)
		return 0;
	error = model_load(model_out, reader);
	xt_reader_position(reader, &read_bytes, &all_bytes);
	xt_reader_close(reader);
	if (error)
		return error;
	*reader_out = open_log(log, report, log->has_crash_buffer ? read_bytes : 0);
	if (*reader_out)
		return 0;
	model_free(*model_out);
	*model_out = NULL;
	return 0;
}
