/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass over a log fills a model, with one function for each kind of rows, then sorts and
 * completes its tables.
 */
#include "merge/read/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "log/base/script_name.h"
#include "log/read/rows.h"
#include "merge/read/inputs.h"

#define MODULES_SEARCHED_MAX 1024u

/*
 * Returns the last module that starts at or before address, or 0. If several have the same start,
 * returns the last one loaded by time_ns.
 */
static size_t module_before(const struct model *model, uint64_t address, uint64_t time_ns)
{
	const struct module *modules = model->modules.rows;
	size_t low = FIRST_NOT(i, 1, model->modules.count,
			       modules[i].start < address || (modules[i].start == address &&
							      modules[i].load_ns <= time_ns));

	return low - 1;
}

/*
 * Returns the module that was mapped at address at that time. A library that is often reloaded at
 * one address has many rows, so later loads are skipped and the search is bounded.
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

uint32_t model_range_at(const struct model *model, const struct range_call *call, uint32_t autograd)
{
	/* It caches the last search. */
	struct ranges *ranges = (struct ranges *)&model->ranges;
	uint32_t range = ranges_at(ranges, call->thread, call->time_ns);
	uint32_t caller = autograd_state(&model->autograd, autograd)->caller;

	range = xla_tuning_range(&model->tuning, ranges, call, range);
	return range || !caller ? range : ranges_at(ranges, caller, call->time_ns);
}

uint32_t model_module_of(const struct model *model, const struct stack *stack, size_t place,
			 uint64_t address)
{
	uint32_t id = model->frame_modules.list[place], module;

	if (!stack->has_modules)
		return module_at(model, address, stack->seen_ns);
	module = id < model->module_places.count ? model->module_places.rows[id] : 0;
	return address >= model->modules.rows[module].start &&
			       address < model->modules.rows[module].end
		       ? module
		       : 0;
}

const char *model_title(const struct model *model, enum xt_range_operation kind, uint32_t context,
			uint64_t number)
{
	uint32_t text = range_names_find(&model->titles[kind], context, number);

	return names_text(&model->names, model_string(model, text), NULL);
}

void model_free(struct model *model)
{
	if (!model)
		return;
	names_free(&model->names);
	free_all(model->strings.rows, model->stacks.rows, model->threads.rows, model->streams.rows,
		 model->shapes.rows, model->copy_shapes.rows);
	nodes_free(&model->nodes);
	autograd_free(&model->autograd);
	pauses_free(&model->pauses);
	pauses_free(&model->stops);
	cpu_samples_free(&model->cpu_samples);
	free(model->renumbered_ns.list);
	xla_tuning_free(&model->tuning);
	ranges_free(&model->ranges);
	collective_calls_free(&model->collective_calls);
	for (int kind = 0; kind < MODEL_TITLES; kind++)
		range_names_free(&model->titles[kind]);
	xt_hash_free(&model->apis_by_id);
	free_all(model->modules.rows, model->apis.rows, model->meta.rows, model->account.rows,
		 model->symbols.rows, model->sources.rows, model->compiled.rows, model->frames.list,
		 model->frame_modules.list, model->module_places.rows, model->python.list,
		 model->python_frames.rows, model->module_reach, model);
}

static const struct pair *find_pair(const struct model *model, const struct pair *pairs,
				    size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names_text(&model->names, pairs[i].key, NULL), key))
			return &pairs[i];
	return NULL;
}

const char *model_meta(const struct model *model, const char *key)
{
	const struct pair *pair = find_pair(model, model->meta.rows, model->meta.count, key);

	return pair ? names_text(&model->names, pair->text, NULL) : "";
}

const char *model_gpu(const struct model *model, uint32_t device, const char *property)
{
	char key[64];

	snprintf(key, sizeof(key), "gpu.%u.%s", device, property);
	return model_meta(model, key);
}

bool model_is_flight_recording(const struct model *model)
{
	return model_meta(model, "log.flight_recorder")[0] != '\0';
}

uint64_t model_process_start_ns(const struct model *model, const struct xt_log_header *header)
{
	/* To hundredths of a second; older logs have whole ones. */
	double started_s = strtod(model_meta(model, "process.started"), NULL);
	double before_ns = (double)header->start_realtime_ns - started_s * 1e9;

	if (started_s <= 0 || before_ns < 0 || before_ns >= (double)header->start_monotonic_ns)
		return header->start_monotonic_ns;
	return header->start_monotonic_ns - (uint64_t)before_ns;
}

static const struct pair *find_account(const struct model *model, const char *name)
{
	return find_pair(model, model->account.rows, model->account.count, name);
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
	return base_name(model_meta(model, "process.exe"));
}

void model_process_title(const struct model *model, char out[PROCESS_TITLE_BYTES])
{
	xt_script_title(out, PROCESS_TITLE_BYTES, model_meta(model, "process.exe"),
			model_meta(model, "process.cmdline"));
}

#define CPU_HZ_DEFAULT 99.0
#define CPU_HZ_MIN     0.01
#define CPU_HZ_MAX     1e6

uint64_t cpu_period_ns(const struct model *model)
{
	double hz = strtod(model_meta(model, "cpu.hz"), NULL);

	return (uint64_t)(1e9 / (hz >= CPU_HZ_MIN && hz <= CPU_HZ_MAX ? hz : CPU_HZ_DEFAULT));
}

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
	xt_grow_bytes(rows, capacity, id + 1, row_bytes);
	if (*count <= id)
		*count = id + 1;
	(*defined)++;
	return *(char **)rows + id * row_bytes;
}
#define ROW_OF_ID(table, id)                                                                       \
	row_of_id(&(table).rows, &(table).capacity, &(table).count, &(table).defined, (id),        \
		  sizeof(*(table).rows))
#define NEXT_ROW(table) ROW_OF_ID(table, (table).count)

/* Sets the row of an id. A later definition replaces an earlier one. Ignores impossible ids. */
#define SET_ROW(table, id, ...)                                                                    \
	({                                                                                         \
		if (is_possible((id), (table).defined))                                            \
			*(__typeof__((table).rows))ROW_OF_ID(table, (id)) = __VA_ARGS__;           \
	})

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
	SET_ROW(model->threads, row->id,
		(struct thread){narrow(row->tid), intern(model, row->name)});
}

static void load_string(struct model *model, const struct xt_row_string *row)
{
	SET_ROW(model->strings, row->id, intern(model, row->text));
}

static void load_api(struct model *model, const struct xt_row_api *row)
{
	struct xt_hash_slot *slot = model_api_slot(model, row->id);

	if (!slot->item) {
		if (row->id > UINT32_MAX || model->apis.count == MODEL_APIS_MAX)
			return;
		*slot = (struct xt_hash_slot){xt_hash_u64(row->id), (uint32_t)model->apis.count};
		NEXT_ROW(model->apis);
	}
	/* An API of unknown class counts as one without work. */
	model->apis.rows[slot->item] = (struct api){
		.id = (uint32_t)row->id,
		.name = intern(model, row->name),
		.class = row->class < XT_API_CLASSES ? (uint32_t)row->class : XT_API_OTHER,
	};
}

static void load_stream(struct model *model, const struct xt_row_stream *row)
{
	SET_ROW(model->streams, row->id,
		(struct stream){true, narrow(row->device), narrow(row->context),
				narrow(row->stream)});
}

static void set_collective(struct shape *shape, struct model *model)
{
	size_t length;
	const char *name = names_text(&model->names, model_string(model, shape->string), &length);

	shape->is_collective = is_collective_kernel(name, length);
	if (!shape->is_collective)
		return;
	shape->operation = (uint8_t)collective_operation(name, length);
	model->has_collectives = true;
}

static void load_shape(struct model *model, const struct xt_row_shape *row)
{
	struct shape shape = {
		.string = narrow(row->name),
		.grid = {narrow(row->grid_x), narrow(row->grid_y), narrow(row->grid_z)},
		.block = {narrow(row->block_x), narrow(row->block_y), narrow(row->block_z)},
		.static_shared_bytes = row->static_shared_bytes,
		.dynamic_shared_bytes = row->dynamic_shared_bytes,
		.registers = narrow(row->registers),
	};

	if (!is_possible(row->id, model->shapes.defined))
		return;
	set_collective(&shape, model);
	*(struct shape *)ROW_OF_ID(model->shapes, row->id) = shape;
}

static void load_copy_shape(struct model *model, const struct xt_row_copy_shape *row)
{
	SET_ROW(model->copy_shapes, row->id,
		(struct copy_shape){
			.kind = narrow(row->kind),
			.source = narrow(row->source),
			.destination = narrow(row->destination),
			.is_async = row->async != 0,
			.from_device = narrow(row->from_device),
			.to_device = narrow(row->to_device),
		});
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
	model->times.last_clock_ns = larger(model->times.last_clock_ns, row->monotonic_ns);
}

static void load_name(struct model *model, const struct range_event *event)
{
	uint32_t domain = event->operation == XT_RANGE_NAME_CATEGORY ? event->domain
			  : event->operation == XT_RANGE_NAME_STREAM ? narrow(event->payload)
								     : 0;

	if (event->operation < MODEL_TITLES)
		range_names_add(&model->titles[event->operation], domain, event->key, event->text);
}

#define FRAMES_MAX XT_STACK_FRAMES_MAX /* per stack; further frames are dropped */

static void load_module(struct model *model, const struct xt_row_module *row)
{
	struct module module = {
		.load_ns = row->load_ns,
		.unload_ns = UINT64_MAX,
		.seen_ns = UINT64_MAX,
		.start = row->start,
		.end = row->end,
		.bias = row->bias,
		.id = (uint32_t)row->id,
		.path = intern(model, row->path),
		.build_id = intern(model, row->build_id),
	};

	if (!is_possible(row->id, model->modules.defined))
		return;
	*(uint32_t *)ROW_OF_ID(model->module_places, row->id) = (uint32_t)model->modules.count;
	*(struct module *)NEXT_ROW(model->modules) = module;
}

static void load_module_unload(struct model *model, const struct xt_row_module_unload *row)
{
	uint32_t place =
		row->id < model->module_places.count ? model->module_places.rows[row->id] : 0;

	if (place)
		model->modules.rows[place].unload_ns = row->ns;
}

static void load_python_frame(struct model *model, const struct xt_row_python_frame *row)
{
	SET_ROW(model->python_frames, row->id,
		(struct python_frame){
			.name = narrow(row->name),
			.file = narrow(row->file),
			.line = narrow(row->line),
			.first_line = narrow(row->first_line),
		});
}

/* Loads the Python frames of a stack. Skips frames without a place. */
static void load_python(struct model *model, struct stack *stack, const struct xt_row_stack *row)
{
	const uint64_t *places = row->places.elements;
	uint32_t count = (uint32_t)smaller(row->python.length, row->places.length);

	count = count < FRAMES_MAX ? count : FRAMES_MAX;
	stack->first_python = model->python.count;
	stack->python_count = count;
	for (uint32_t i = 0; i < count; i++)
		list_append(model->python,
			    (struct python_place){
				    .frame = narrow(row->python.elements[i]),
				    .place = places[i] < stack->frame_count ? (uint32_t)places[i]
									    : stack->frame_count,
			    });
}

/* Loads the frames and the module of each. Logs before version 2.3 lack modules. */
static void load_frames(struct model *model, struct stack *stack, const struct xt_row_stack *row)
{
	stack->has_modules = row->modules.length >= stack->frame_count;
	for (uint32_t f = 0; f < stack->frame_count; f++) {
		list_append(model->frame_modules,
			    stack->has_modules ? narrow(row->modules.elements[f]) : 0);
		list_append(model->frames, row->frames.elements[f]);
	}
}

static void load_stack(struct model *model, const struct xt_row_stack *row)
{
	bool is_cut = row->frames.length > FRAMES_MAX;
	struct stack *stack;

	if (!is_possible(row->id, model->stacks.defined))
		return;
	stack = ROW_OF_ID(model->stacks, row->id);
	*stack = (struct stack){
		.first_frame = model->frames.count,
		.frame_count = is_cut ? FRAMES_MAX : (uint32_t)row->frames.length,
		.flags = (uint32_t)row->flags | (is_cut ? XT_STACK_TRUNCATED : 0),
		.seen_ns = row->seen_ns,
	};
	load_python(model, stack, row);
	load_frames(model, stack, row);
}

static void load_symbol(struct model *model, const struct xt_row_symbol *row)
{
	uint32_t name = intern(model, row->name);

	if (row->module <= MODEL_IDS_MAX && model->symbols.count <= MODEL_IDS_MAX)
		*(struct embedded_symbol *)NEXT_ROW(model->symbols) = (struct embedded_symbol){
			row->start, row->bytes, (uint32_t)row->module, name};
}

static struct place model_place_of(struct model *model, struct xt_bytes function,
				   struct xt_bytes file, uint64_t line)
{
	return (struct place){intern(model, function), intern(model, file), narrow(line)};
}

static void load_source(struct model *model, const struct xt_row_source *row)
{
	struct place place = model_place_of(model, row->function, row->file, row->line);
	uint32_t order = (uint32_t)model->sources.count;

	if (row->module <= MODEL_IDS_MAX && order <= MODEL_IDS_MAX)
		*(struct embedded_source *)NEXT_ROW(model->sources) =
			(struct embedded_source){row->address, (uint32_t)row->module, order, place};
}

static void load_compiled(struct model *model, const struct xt_row_compiled *row)
{
	struct place place = model_place_of(model, row->function, row->file, row->line);

	if (row->frame <= MODEL_IDS_MAX && model->compiled.count <= MODEL_IDS_MAX)
		*(struct compiled_place *)NEXT_ROW(model->compiled) =
			(struct compiled_place){(uint32_t)row->frame, narrow(row->trace), place};
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
		model->times.full_ns = row->time_ns;
	if (is_on || row->why == XT_SWITCH_STOPPED || row->why == XT_SWITCH_DUTY)
		pauses_add(&model->stops, row->time_ns, is_on);
	if (is_on && row->why == XT_SWITCH_YIELDED)
		list_append(model->renumbered_ns, row->time_ns);
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

	if (event.operation >= XT_RANGE_NAME_THREAD && event.operation <= XT_RANGE_NAME_EVENT)
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
		samples->list, samples->count, samples->capacity,
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
	X(RANGE, range)                                                                            \
	X(SYMBOL, symbol)                                                                          \
	X(PYTHON_FRAME, python_frame)                                                              \
	X(SOURCE, source)                                                                          \
	X(COMPILED, compiled)                                                                      \
	X(AUTOGRAD, autograd)                                                                      \
	X(CPU_SAMPLE, cpu_sample)

#define LOAD_ROWS(K, kind)                                                                         \
	XT_DEFINE_ROWS_VISITOR(load_##kind##_rows, kind, struct model, load_##kind)
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
		reach = larger(reach, model->modules.rows[m].end);
		model->module_reach[m] = reach;
	}
	for (size_t m = count; m-- > 1;)
		model->module_places.rows[model->modules.rows[m].id] = (uint32_t)m;
}

/* Prefers a name that the program gave through NVTX to the system's name. */
static void name_threads(struct model *model)
{
	for (size_t t = 1; t < model->threads.count; t++) {
		struct thread *thread = &model->threads.rows[t];
		uint32_t text =
			range_names_find(&model->titles[XT_RANGE_NAME_THREAD], 0, thread->tid);

		if (thread->tid && text && text < model->strings.count)
			thread->name = model->strings.rows[text];
	}
}

/* Creates row 0, the undefined one. */
#define BEGIN_TABLE(table, room)                                                                   \
	((table).count = 1, xt_grow((table).rows, (table).capacity, (room)))

/*
 * Samples are found by the kernel's thread id, which the traced log of the process has too. Periods
 * vary by a fifth: a sample reaches far enough to meet the next one, if none is missing.
 */
static void index_cpu_samples(struct model *model)
{
	struct cpu_samples *samples = &model->cpu_samples;

	for (size_t s = 0; s < samples->count; s++) {
		uint32_t thread = samples->list[s].thread;

		samples->list[s].tid =
			thread < model->threads.count ? model->threads.rows[thread].tid : 0;
	}
	cpu_samples_sort(samples, cpu_period_ns(model) * 3 / 4);
}

/* A log with a size limit may lack its earliest events. */
static void leave_out_beginning(struct model *model)
{
	struct log_times *times = &model->times;

	times->from_ns = strtoull(model_meta(model, "log.from"), NULL, 10);
	if (times->from_ns > times->start_ns)
		pauses_leave_out(&model->pauses, times->start_ns, times->from_ns);
}

COMPARE_INDEXES_BY(compare_node_times, struct node, UP(time_ns))

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
	SORT_BY(order, count, compare_node_times, nodes->rows);
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

static struct model *new_model(const struct xt_log_header *header)
{
	struct model *model = xt_calloc(1, sizeof(*model));

	model->pid = header->pid;
	model->times.start_ns = header->start_monotonic_ns;
	model->times.start_realtime_ns = header->start_realtime_ns;
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
	xt_hash_require(&model->apis_by_id, MODEL_APIS_MAX);
	BEGIN_TABLE(model->compiled, 1);
	BEGIN_TABLE(model->symbols, 1);
	BEGIN_TABLE(model->sources, 1);
	BEGIN_TABLE(model->meta, MODEL_PAIRS_MAX);
	BEGIN_TABLE(model->account, MODEL_PAIRS_MAX);
	model->meta.count = model->account.count = 0; /* not indexed by id */
	return model;
}

/* A node belongs to the range in which it was created. */
static void find_ranges_of_nodes(struct model *model)
{
	for (size_t n = 0; n < model->nodes.count; n++) {
		struct node *node = &model->nodes.rows[n];

		node->range = model_range_at(
			model, &(struct range_call){node->thread, node->stack, node->time_ns},
			node->autograd);
		collective_calls_capture(&model->collective_calls, node->thread, node->time_ns);
	}
}

static void index_tables(struct model *model)
{
	SORT(model->symbols.rows + 1, model->symbols.count - 1, compare_symbols);
	SORT(model->sources.rows + 1, model->sources.count - 1, compare_sources);
	index_modules(model);
	resolve_paths(model);
	for (int kind = 0; kind < MODEL_TITLES; kind++)
		range_names_index(&model->titles[kind]);
	name_threads(model);
	ranges_index(&model->ranges);
	collective_calls_index(&model->collective_calls, model);
	xla_join(model);
	find_ranges_of_nodes(model);
	/* The tracer read autograd's memory until it found the layout to be unknown. */
	if (model_meta(model, "torch.missing")[0])
		autograd_free(&model->autograd);
	model->autograd.first_joined = (uint32_t)model->stacks.count;
	if (model->autograd.states.count)
		join_graph_nodes(model);
	nodes_index(&model->nodes);
	leave_out_beginning(model);
	index_cpu_samples(model);
	pauses_index(&model->pauses);
	pauses_index(&model->stops);
	SORT(model->renumbered_ns.list, model->renumbered_ns.count, compare_u64);
}

int model_load(struct model **model_out, struct xt_reader *reader)
{
	struct model *model = new_model(xt_reader_header(reader));
	const struct xt_chunk *chunk;
	char why[XT_REFUSAL_BYTES];

	*model_out = NULL;
	while ((chunk = xt_reader_next(reader, model_row_kinds())))
		model_add_rows(model, chunk);
	if (xt_reader_refused(reader, why)) {
		model_free(model);
		return -EFBIG;
	}
	model->damage = *xt_reader_damage(reader);
	if (model->damage.lacks_memory)
		xt_out_of_memory(0);
	model->nodes.updated_max = NODES_UPDATED_MIN + xt_reader_event_rows(reader);
	index_tables(model);
	*model_out = model;
	return 0;
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
