/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass over a log, and access to its model.
 */
#include "merge/read/model.h"

#include <errno.h>
#include <stdio.h>

#include "log/base/script_name.h"
#include "log/base/grow.h"
#include "merge/read/model_load.h"

#define MODULES_SEARCHED_MAX 1024u
#define NODES_UPDATED_MIN    (1u << 20) /* rows that graph updates may add to any log */

static int compare_modules(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->load_ns != y->load_ns)
		return x->load_ns < y->load_ns ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct embedded_symbol *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_sources(const void *a, const void *b)
{
	const struct embedded_source *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* "/folder/plugin.so" for "./plugin.so" */
static uint32_t join_paths(struct model *model, const char *folder, const char *path)
{
	uint32_t name = NAME_FAILED;
	char *whole;
	int length;

	while (!strncmp(path, "./", 2))
		path += 2 + strspn(path + 2, "/");
	length = asprintf(&whole, "%s/%s", strcmp(folder, "/") ? folder : "", path);
	if (length < 0)
		return NAME_FAILED;
	name = names_intern(&model->names, whole, (size_t)length);
	free(whole);
	return name;
}

/*
 * Completes the paths in the log of a killed process: the path of its executable, and relative
 * paths such as "./plugin.so".
 */
static int resolve_paths(struct model *model)
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
		if (module->path == NAME_FAILED)
			return -ENOMEM;
	}
	return 0;
}

/* Sorts the modules and stores the largest end before each index, which bounds the search. */
static int index_modules(struct model *model)
{
	size_t count = model->modules.count;
	uint64_t reach = 0;

	qsort(model->modules.rows + 1, count - 1, sizeof(*model->modules.rows), compare_modules);
	model->module_reach = calloc(count, sizeof(*model->module_reach));
	if (!model->module_reach)
		return -ENOMEM;
	for (size_t m = 1; m < count; m++) {
		if (model->modules.rows[m].end > reach)
			reach = model->modules.rows[m].end;
		model->module_reach[m] = reach;
	}
	for (size_t m = count; m-- > 1;)
		model->module_places[model->modules.rows[m].id] = (uint32_t)m;
	return 0;
}

/*
 * The last module that starts at or before address. Of those with the same start, the last that was
 * loaded by then. 0 if there is none.
 */
static size_t module_before(const struct model *model, uint64_t address, uint64_t time_ns)
{
	const struct module *modules = model->modules.rows;
	size_t low = 1, high = model->modules.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (modules[middle].start < address ||
		    (modules[middle].start == address && modules[middle].load_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/*
 * The module that was mapped at address at that time. A library that is reloaded often at one
 * address has many rows: later loads are skipped, and the search is bounded.
 */
static uint32_t module_at(const struct model *model, uint64_t address, uint64_t time_ns)
{
	size_t m = module_before(model, address, UINT64_MAX);

	for (unsigned n = 0; n < MODULES_SEARCHED_MAX && m && model->module_reach[m] > address;
	     n++) {
		const struct module *module = &model->modules.rows[m];

		if (module->load_ns <= time_ns && module->end > address &&
		    time_ns < module->unload_ns)
			return (uint32_t)m;
		if (module->load_ns > time_ns && module[-1].start == module->start)
			m = module_before(model, module->start, time_ns);
		else
			m--;
	}
	return 0;
}

uint32_t model_module_of(const struct model *model, const struct stack *stack, size_t place,
			 uint64_t address)
{
	uint32_t id = model->frame_modules[place], module;

	if (!stack->has_modules)
		return module_at(model, address, stack->seen_ns);
	module = id < model->module_place_capacity ? model->module_places[id] : 0;
	return address >= model->modules.rows[module].start &&
			       address < model->modules.rows[module].end
		       ? module
		       : 0;
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
	((table).count = 1, grow(&(table).rows, &(table).capacity, (room), sizeof(*(table).rows)))

/* A log with a size limit may lack its earliest events. */
static int leave_out_beginning(struct model *model)
{
	uint64_t from_ns = strtoull(model_meta(model, "log.from"), NULL, 10);

	return from_ns > model->start_ns
		       ? pauses_leave_out(&model->pauses, model->start_ns, from_ns)
		       : 0;
}

int model_load(struct model **model_out, struct xt_reader *reader)
{
	struct model *model = calloc(1, sizeof(*model));
	const struct xt_chunk *chunk;
	char why[XT_REFUSAL_BYTES];
	int error = -ENOMEM;

	*model_out = NULL;
	if (!model)
		return -ENOMEM;
	model->pid = xt_reader_header(reader)->pid;
	model->start_ns = xt_reader_header(reader)->start_monotonic_ns;
	model->start_realtime_ns = xt_reader_header(reader)->start_realtime_ns;
	if (names_init(&model->names) < 0 || BEGIN_TABLE(model->strings, 1) < 0 ||
	    BEGIN_TABLE(model->stacks, 1) < 0 || BEGIN_TABLE(model->threads, 1) < 0 ||
	    BEGIN_TABLE(model->streams, 1) < 0 || BEGIN_TABLE(model->shapes, 1) < 0 ||
	    BEGIN_TABLE(model->copy_shapes, 1) < 0 || BEGIN_TABLE(model->python_frames, 1) < 0 ||
	    BEGIN_TABLE(model->modules, 1) < 0 || BEGIN_TABLE(model->apis, 1) < 0 ||
	    BEGIN_TABLE(model->symbols, 1) < 0 || BEGIN_TABLE(model->sources, 1) < 0 ||
	    BEGIN_TABLE(model->meta, MODEL_PAIRS_MAX) < 0 ||
	    BEGIN_TABLE(model->account, MODEL_PAIRS_MAX) < 0)
		goto out;
	model->meta.count = model->account.count = 0; /* not indexed by id */
	error = 0;
	while (!error && (chunk = xt_reader_next(reader, model_load_kinds())))
		error = model_load_chunk(model, chunk);
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
	error = index_modules(model);
	if (!error)
		error = resolve_paths(model);
	range_names_index(&model->category_names);
	range_names_index(&model->thread_names);
	range_names_index(&model->device_names);
	range_names_index(&model->context_names);
	range_names_index(&model->stream_names);
	name_threads(model);
	if (!error)
		error = ranges_index(&model->ranges);
	/* A node belongs to the range in which it was created. */
	for (size_t n = 0; n < model->nodes.count && !error; n++)
		model->nodes.rows[n].range = ranges_at(&model->ranges, model->nodes.rows[n].thread,
						       model->nodes.rows[n].time_ns);
	if (!error)
		error = nodes_index(&model->nodes);
	if (!error)
		error = leave_out_beginning(model);
	pauses_index(&model->pauses);
	if (model->renumbered_ns.count)
		qsort(model->renumbered_ns.rows, model->renumbered_ns.count,
		      sizeof(*model->renumbered_ns.rows), compare_times);
out:
	if (error)
		model_free(model);
	else
		*model_out = model;
	return error;
}

const char *model_title(const struct model *model, const struct range_names *titles,
			uint32_t context, uint64_t number)
{
	uint32_t text = range_names_find(titles, context, number);

	return names_text(&model->names,
			  model->strings.rows[text < model->strings.count ? text : 0], NULL);
}

void model_free(struct model *model)
{
	if (!model)
		return;
	names_free(&model->names);
	free(model->strings.rows);
	free(model->stacks.rows);
	free(model->threads.rows);
	free(model->streams.rows);
	free(model->shapes.rows);
	free(model->copy_shapes.rows);
	nodes_free(&model->nodes);
	pauses_free(&model->pauses);
	free(model->renumbered_ns.rows);
	ranges_free(&model->ranges);
	range_names_free(&model->category_names);
	range_names_free(&model->thread_names);
	range_names_free(&model->device_names);
	range_names_free(&model->context_names);
	range_names_free(&model->stream_names);
	free(model->modules.rows);
	free(model->apis.rows);
	free(model->meta.rows);
	free(model->account.rows);
	free(model->symbols.rows);
	free(model->sources.rows);
	free(model->frames);
	free(model->frame_modules);
	free(model->module_places);
	free(model->python);
	free(model->python_frames.rows);
	free(model->module_reach);
	free(model);
}

const char *model_meta(const struct model *model, const char *key)
{
	for (size_t i = 0; i < model->meta.count; i++)
		if (!strcmp(names_text(&model->names, model->meta.rows[i].key, NULL), key))
			return names_text(&model->names, model->meta.rows[i].text, NULL);
	return "";
}

static const struct pair *find_account(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->account.count; i++)
		if (!strcmp(names_text(&model->names, model->account.rows[i].key, NULL), name))
			return &model->account.rows[i];
	return NULL;
}

uint64_t model_account(const struct model *model, const char *name)
{
	const struct pair *pair = find_account(model, name);

	return pair ? pair->value : 0;
}

bool model_has_account(const struct model *model, const char *name)
{
	return find_account(model, name) != NULL;
}

const char *model_process_name(const struct model *model)
{
	const char *path = model_meta(model, "process.exe");
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void model_process_title(const struct model *model, char out[PROCESS_TITLE_BYTES])
{
	xt_script_title(out, PROCESS_TITLE_BYTES, model_meta(model, "process.exe"),
			model_meta(model, "process.cmdline"));
}
