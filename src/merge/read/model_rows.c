/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds rows to the model, with one function for each kind of chunk.
 */
#include "merge/read/model_rows.h"

#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/read/rows.h"
#include "merge/read/collectives.h"

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

void model_add_rows(struct model *model, const struct xt_chunk *chunk)
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
