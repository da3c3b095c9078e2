/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass over a log: fills a model, with one function for each kind of rows, then sorts and
 * completes its tables.
 */
#include "merge/read/model_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/read/rows.h"
#include "merge/read/collectives.h"
#include "merge/read/xla.h"

/*
 * Ids are dense, so a table has about as many slots as rows. Lost chunks leave gaps. An id beyond a
 * gap of this size is damage, and must not cost memory.
 */
#define MODEL_GAP_MAX (1u << 20)
#define MODEL_IDS_MAX (UINT32_MAX - 1)

static bool is_possible(uint64_t id, size_t defined)
{
	return id && id <= MODEL_IDS_MAX && id <= MODEL_GAP_MAX + 2 * (uint64_t)defined;
}

/* Returns the row of a valid id, created if needed. */
static void *row_of_id(void *rows, size_t *capacity, size_t *count, size_t *defined, uint64_t id,
		       size_t row_bytes)
{
	xt_grow(rows, capacity, id + 1, row_bytes);
	if (*count <= id)
		*count = id + 1;
	(*defined)++;
	return *(char **)rows + id * row_bytes;
}
#define ROW_OF_ID(table, id)                                                                       \
	row_of_id(&(table).rows, &(table).capacity, &(table).count, &(table).defined, (id),        \
		  sizeof(*(table).rows))
#define NEXT_ROW(table) ROW_OF_ID(table, (table).count)

static uint32_t narrow(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint32_t intern(struct model *model, struct xt_bytes text)
{
	return names_intern(&model->names, text.length ? text.data : "", text.length);
}

/* Returns the pair with that key, which a later row replaces. NULL if there are too many keys. */
static struct pair *pair_of_key(struct pair *pairs, size_t *count, uint32_t key)
{
	for (size_t i = 0; i < *count; i++)
		if (pairs[i].key == key)
			return &pairs[i];
	if (*count == MODEL_PAIRS_MAX)
		return NULL;
	pairs[*count] = (struct pair){.key = key};
	return &pairs[(*count)++];
}

static void load_meta(struct model *model, const struct xt_row_meta *row)
{
	uint32_t key = intern(model, row->key), text = intern(model, row->value);
	struct pair *pair = pair_of_key(model->meta.rows, &model->meta.count, key);

	if (pair)
		pair->text = text;
}

static void load_account(struct model *model, const struct xt_row_account *row)
{
	struct pair *pair =
		pair_of_key(model->account.rows, &model->account.count, intern(model, row->name));

	if (pair)
		pair->value = row->value;
}

static void load_thread(struct model *model, const struct xt_row_thread *row)
{
	uint32_t name = intern(model, row->name);
	struct thread *thread;

	if (!is_possible(row->id, model->threads.defined))
		return;
	thread = ROW_OF_ID(model->threads, row->id);
	*thread = (struct thread){narrow(row->tid), name};
}

static void load_string(struct model *model, const struct xt_row_string *row)
{
	uint32_t name = intern(model, row->text);
	uint32_t *string;

	if (!is_possible(row->id, model->strings.defined))
		return;
	string = ROW_OF_ID(model->strings, row->id);
	*string = name;
}

static void load_api(struct model *model, const struct xt_row_api *row)
{
	uint32_t name = intern(model, row->name);
	uint16_t place = model_api(model, row->id);
	size_t s = model_api_slot(row->id);

	if (!place) {
		if (row->id > UINT32_MAX || model->apis.count == MODEL_APIS_MAX)
			return;
		place = (uint16_t)model->apis.count;
		NEXT_ROW(model->apis);
		while (model->api_slots[s])
			s = (s + 1) % (MODEL_APIS_MAX * 2);
		model->api_slots[s] = place;
	}
	/* An API of unknown class counts as one without work. */
	model->apis.rows[place] = (struct api){
		.id = (uint32_t)row->id,
		.name = name,
		.class = row->class < XT_API_CLASSES ? (uint32_t)row->class : XT_API_OTHER,
	};
}

static void load_stream(struct model *model, const struct xt_row_stream *row)
{
	struct stream *stream;

	if (!is_possible(row->id, model->streams.defined))
		return;
	stream = ROW_OF_ID(model->streams, row->id);
	*stream = (struct stream){true, narrow(row->device), narrow(row->context),
				  narrow(row->stream)};
}

static void set_collective(struct shape *shape, struct model *model, uint64_t string)
{
	size_t length;
	const char *name = names_text(
		&model->names,
		string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY, &length);

	shape->is_collective = is_collective_kernel(name, length);
	if (!shape->is_collective)
		return;
	shape->operation = (uint8_t)collective_operation(name, length);
	model->has_collectives = true;
}

static void load_shape(struct model *model, const struct xt_row_shape *row)
{
	struct shape *shape;

	if (!is_possible(row->id, model->shapes.defined))
		return;
	shape = ROW_OF_ID(model->shapes, row->id);
	*shape = (struct shape){
		.string = narrow(row->name),
		.grid = {narrow(row->grid_x), narrow(row->grid_y), narrow(row->grid_z)},
		.block = {narrow(row->block_x), narrow(row->block_y), narrow(row->block_z)},
		.static_shared_bytes = row->static_shared_bytes,
		.dynamic_shared_bytes = row->dynamic_shared_bytes,
		.registers = narrow(row->registers),
	};
	set_collective(shape, model, row->name);
}

static void load_copy_shape(struct model *model, const struct xt_row_copy_shape *row)
{
	struct copy_shape *shape;

	if (!is_possible(row->id, model->copy_shapes.defined))
		return;
	shape = ROW_OF_ID(model->copy_shapes, row->id);
	*shape = (struct copy_shape){
		.kind = narrow(row->kind),
		.source = narrow(row->source),
		.destination = narrow(row->destination),
		.is_async = row->async != 0,
		.from_device = narrow(row->from_device),
		.to_device = narrow(row->to_device),
	};
}

static void load_graph_node(struct model *model, const struct xt_row_graph_node *row)
{
	nodes_add(&model->nodes, &(struct node){
					 .id = row->id,
					 .origin = row->origin,
					 .time_ns = row->time_ns,
					 .stack = narrow(row->stack),
					 .thread = narrow(row->thread),
					 .type = narrow(row->type),
					 .autograd = narrow(row->autograd),
					 .sequence = row->sequence,
					 .node_sequence = row->node_sequence,
				 });
}

static void load_graph_node_name(struct model *model, const struct xt_row_graph_node_name *row)
{
	nodes_add_name(&model->nodes,
		       &(struct node_name){row->node, row->time_ns, narrow(row->string)});
}

static void load_autograd(struct model *model, const struct xt_row_autograd *row)
{
	autograd_add_state(&model->autograd, row->id,
			   &(struct autograd_state){
				   .thread = row->thread,
				   .node_thread = row->node_thread,
				   .node_type = narrow(row->node_type),
				   .node_class = narrow(row->node_class),
				   .caller = narrow(row->caller),
				   .caller_stack = narrow(row->caller_stack),
			   });
}

static void load_graph_update(struct model *model, const struct xt_row_graph_update *row)
{
	if (row->exec)
		nodes_add(&model->nodes, &(struct node){
						 .id = row->node,
						 .time_ns = row->time_ns,
						 .graph_exec = narrow(row->exec),
						 .like_graph = narrow(row->graph),
						 .stack = narrow(row->stack),
						 .thread = narrow(row->thread),
					 });
}

static void load_clock(struct model *model, const struct xt_row_clock *row)
{
	if (row->monotonic_ns > model->last_clock_ns)
		model->last_clock_ns = row->monotonic_ns;
}

static bool names_something(const struct range_event *event)
{
	return event->operation >= XT_RANGE_NAME_THREAD && event->operation <= XT_RANGE_NAME_EVENT;
}

/* Names of events are not shown. */
static void load_name(struct model *model, const struct range_event *event)
{
	switch (event->operation) {
	case XT_RANGE_NAME_THREAD:
		range_names_add(&model->thread_names, 0, event->key, event->text);
		return;
	case XT_RANGE_NAME_CATEGORY:
		range_names_add(&model->category_names, event->domain, event->key, event->text);
		return;
	case XT_RANGE_NAME_DEVICE:
		range_names_add(&model->device_names, 0, event->key, event->text);
		return;
	case XT_RANGE_NAME_CONTEXT:
		range_names_add(&model->context_names, 0, event->key, event->text);
		return;
	case XT_RANGE_NAME_STREAM:
		range_names_add(&model->stream_names, narrow(event->payload), event->key,
				event->text);
		return;
	default:
		return;
	}
}

#define FRAMES_MAX XT_STACK_FRAMES_MAX /* per stack; further frames are dropped */

static void load_module(struct model *model, const struct xt_row_module *row)
{
	uint32_t path = intern(model, row->path);
	uint32_t build_id = intern(model, row->build_id);
	struct module *module;

	if (!is_possible(row->id, model->modules.defined))
		return;
	module = NEXT_ROW(model->modules);
	xt_grow(&model->module_places, &model->module_place_capacity, row->id + 1,
		sizeof(*model->module_places));
	model->module_places[row->id] = (uint32_t)(module - model->modules.rows);
	*module = (struct module){
		.load_ns = row->load_ns,
		.unload_ns = UINT64_MAX,
		.seen_ns = UINT64_MAX,
		.start = row->start,
		.end = row->end,
		.bias = row->bias,
		.id = (uint32_t)row->id,
		.path = path,
		.build_id = build_id,
	};
}

static void load_module_unload(struct model *model, const struct xt_row_module_unload *row)
{
	uint32_t place = row->id < model->module_place_capacity ? model->module_places[row->id] : 0;

	if (place)
		model->modules.rows[place].unload_ns = row->ns;
}

static void load_python_frame(struct model *model, const struct xt_row_python_frame *row)
{
	struct python_frame *frame;

	if (!is_possible(row->id, model->python_frames.defined))
		return;
	frame = ROW_OF_ID(model->python_frames, row->id);
	*frame = (struct python_frame){
		.name = narrow(row->name),
		.file = narrow(row->file),
		.line = narrow(row->line),
		.first_line = narrow(row->first_line),
	};
}

/* Loads the Python frames of a stack. Skips frames without a place. */
static void load_python(struct model *model, struct stack *stack, const struct xt_row_stack *row)
{
	const uint64_t *places = row->places.elements;
	uint32_t count = (uint32_t)smaller(row->python.length, row->places.length);

	count = count < FRAMES_MAX ? count : FRAMES_MAX;
	xt_grow(&model->python, &model->python_capacity, model->python_count + count,
		sizeof(*model->python));
	stack->first_python = model->python_count;
	stack->python_count = count;
	for (uint32_t i = 0; i < count; i++)
		model->python[model->python_count++] = (struct python_place){
			.frame = narrow(row->python.elements[i]),
			.place = places[i] < stack->frame_count ? (uint32_t)places[i]
								: stack->frame_count,
		};
}

/* Loads the module of each frame. Logs before version 2.3 lack them. */
static void load_frame_modules(struct model *model, struct stack *stack, struct xt_list ids)
{
	uint32_t *modules;

	xt_grow(&model->frame_modules, &model->frame_module_capacity,
		model->frame_count + stack->frame_count, sizeof(*modules));
	modules = model->frame_modules + model->frame_count;
	stack->has_modules = ids.length >= stack->frame_count;
	for (uint32_t f = 0; f < stack->frame_count; f++)
		modules[f] = stack->has_modules ? narrow(ids.elements[f]) : 0;
}

static void load_stack(struct model *model, const struct xt_row_stack *row)
{
	bool is_cut = row->frames.length > FRAMES_MAX;
	struct stack *stack;

	if (!is_possible(row->id, model->stacks.defined))
		return;
	stack = ROW_OF_ID(model->stacks, row->id);
	*stack = (struct stack){
		.first_frame = model->frame_count,
		.frame_count = is_cut ? FRAMES_MAX : (uint32_t)row->frames.length,
		.flags = (uint32_t)row->flags | (is_cut ? XT_STACK_TRUNCATED : 0),
		.seen_ns = row->seen_ns,
	};
	load_python(model, stack, row);
	if (!stack->frame_count)
		return;
	load_frame_modules(model, stack, row->modules);
	xt_grow(&model->frames, &model->frame_capacity, model->frame_count + stack->frame_count,
		sizeof(*model->frames));
	memcpy(model->frames + model->frame_count, row->frames.elements,
	       stack->frame_count * sizeof(*model->frames));
	model->frame_count += stack->frame_count;
}

static void load_symbol(struct model *model, const struct xt_row_symbol *row)
{
	uint32_t name = intern(model, row->name);
	struct embedded_symbol *symbol;

	if (row->module > MODEL_IDS_MAX || model->symbols.count > MODEL_IDS_MAX)
		return;
	symbol = NEXT_ROW(model->symbols);
	*symbol = (struct embedded_symbol){row->start, row->bytes, (uint32_t)row->module, name};
}

static void load_source(struct model *model, const struct xt_row_source *row)
{
	struct place place = {
		.function = intern(model, row->function),
		.file = intern(model, row->file),
		.line = narrow(row->line),
	};
	uint32_t order = (uint32_t)model->sources.count;
	struct embedded_source *source;

	if (row->module > MODEL_IDS_MAX || model->sources.count > MODEL_IDS_MAX)
		return;
	source = NEXT_ROW(model->sources);
	*source = (struct embedded_source){row->address, (uint32_t)row->module, order, place};
}

static void load_compiled(struct model *model, const struct xt_row_compiled *row)
{
	struct place place = {
		.function = intern(model, row->function),
		.file = intern(model, row->file),
		.line = narrow(row->line),
	};
	struct compiled_place *compiled;

	if (row->frame > MODEL_IDS_MAX || model->compiled.count > MODEL_IDS_MAX)
		return;
	compiled = NEXT_ROW(model->compiled);
	*compiled = (struct compiled_place){(uint32_t)row->frame, narrow(row->trace), place};
}

static void load_handoff(struct model *model, const struct xt_row_switch *row)
{
	struct cupti_handoffs *cupti_handoffs = &model->cupti_handoffs;

	if (!row->is_on && row->why == XT_SWITCH_YIELDED && !cupti_handoffs->since_ns) {
		if (!cupti_handoffs->count++)
			cupti_handoffs->who = intern(model, row->who);
		cupti_handoffs->since_ns = row->time_ns;
	} else if (row->is_on && cupti_handoffs->since_ns) {
		cupti_handoffs->total_ns += row->time_ns > cupti_handoffs->since_ns
						    ? row->time_ns - cupti_handoffs->since_ns
						    : 0;
		cupti_handoffs->since_ns = 0;
	}
}

static void load_switch(struct model *model, const struct xt_row_switch *row)
{
	bool is_on = row->is_on;

	load_handoff(model, row);
	pauses_add(&model->pauses, row->time_ns, is_on);
	if (!is_on && row->why == XT_SWITCH_SIZE)
		model->full_ns = row->time_ns;
	if (is_on || row->why == XT_SWITCH_STOPPED || row->why == XT_SWITCH_DUTY)
		pauses_add(&model->stops, row->time_ns, is_on);
	if (is_on && row->why == XT_SWITCH_YIELDED) {
		xt_append(model->renumbered_ns.rows, model->renumbered_ns.count,
			  model->renumbered_ns.capacity, row->time_ns);
	}
}

static void load_stack_rate(struct model *model, const struct xt_row_stack_rate *row)
{
	struct stack_rates *rates = &model->rates;

	if (rates->since_ns && row->time_ns > rates->since_ns)
		rates->total_ns += row->time_ns - rates->since_ns;
	rates->since_ns = row->one_in > 1 ? row->time_ns : 0;
	if (row->one_in <= 1)
		return;
	if (!rates->one_in_min || row->one_in < rates->one_in_min)
		rates->one_in_min = row->one_in;
	if (row->one_in > rates->one_in_max)
		rates->one_in_max = row->one_in;
}

static void load_range(struct model *model, const struct xt_row_range *row)
{
	const struct range_event event = {
		.time_ns = row->time_ns,
		.key = row->key,
		.thread = narrow(row->thread),
		.domain = narrow(row->domain),
		.text = narrow(row->text),
		.stack = narrow(row->stack),
		.operation = narrow(row->operation),
		.category = narrow(row->category),
		.payload_type = narrow(row->payload_type),
		.payload = row->payload,
	};

	if (names_something(&event))
		load_name(model, &event);
	else
		ranges_add(&model->ranges, &event);
	collective_calls_add(&model->collective_calls, model, row);
}

static void load_cpu_sample(struct model *model, const struct xt_row_cpu_sample *row)
{
	struct cpu_samples *samples = &model->cpu_samples;
	uint64_t last_ns;

	if (__builtin_add_overflow(row->time_ns, row->span_ns, &last_ns))
		last_ns = row->time_ns;
	xt_append(
		samples->rows, samples->count, samples->capacity,
		(struct cpu_sample){
			.first_ns = row->time_ns,
			.last_ns = last_ns,
			.weight_ns = row->weight_ns,
			.thread = narrow(row->thread),
			.stack = narrow(row->stack),
			.count = narrow(row->count),
			.wait_pid = narrow(row->wait_pid),
			.wait_tid = narrow(row->wait_tid),
			.state = row->state < XT_CPU_STATES ? (uint8_t)row->state : XT_CPU_UNKNOWN,
			.flags = (uint8_t)row->flags,
		});
}

/* The kinds that a model needs. Each has a function load_<kind>() above. */
#define LOADED_KINDS(X)                                                                            \
	X(META, meta)                                                                              \
	X(ACCOUNT, account)                                                                        \
	X(THREAD, thread)                                                                          \
	X(MODULE, module)                                                                          \
	X(MODULE_UNLOAD, module_unload)                                                            \
	X(STRING, string)                                                                          \
	X(STACK, stack)                                                                            \
	X(API, api)                                                                                \
	X(STREAM, stream)                                                                          \
	X(SHAPE, shape)                                                                            \
	X(COPY_SHAPE, copy_shape)                                                                  \
	X(GRAPH_NODE, graph_node)                                                                  \
	X(GRAPH_NODE_NAME, graph_node_name)                                                        \
	X(CLOCK, clock)                                                                            \
	X(GRAPH_UPDATE, graph_update)                                                              \
	X(SWITCH, switch)                                                                          \
	X(STACK_RATE, stack_rate)                                                                  \
	X(RANGE, range)                                                                            \
	X(SYMBOL, symbol)                                                                          \
	X(PYTHON_FRAME, python_frame)                                                              \
	X(SOURCE, source)                                                                          \
	X(COMPILED, compiled)                                                                      \
	X(AUTOGRAD, autograd)                                                                      \
	X(CPU_SAMPLE, cpu_sample)

#define LOAD_ROWS(K, kind)                                                                         \
	static void load_##kind##_rows(struct model *model, const struct xt_chunk *chunk)          \
	{                                                                                          \
		const struct xt_columns_##kind columns = xt_columns_##kind(chunk);                 \
                                                                                                   \
		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {                              \
			const struct xt_row_##kind row = xt_read_##kind(&columns, r);              \
                                                                                                   \
			load_##kind(model, &row);                                                  \
		}                                                                                  \
	}
LOADED_KINDS(LOAD_ROWS)

#define LOADER(K, kind) [XT_KIND_##K] = load_##kind##_rows,
static void (*const load_by_kind[XT_KIND_COUNT])(struct model *,
						 const struct xt_chunk *) = {LOADED_KINDS(LOADER)};

/* Adds the rows of a chunk to the tables. */
static void model_add_rows(struct model *model, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);

	model->rows_read[kind] += xt_chunk_rows(chunk);
	if (load_by_kind[kind])
		load_by_kind[kind](model, chunk);
}

/* Includes END, which is only checked. */
uint32_t model_row_kinds(void)
{
	uint32_t wanted = 1u << XT_KIND_END;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		wanted |= load_by_kind[kind] ? 1u << kind : 0;
	return wanted;
}

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
