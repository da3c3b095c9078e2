/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds rows to the model, with one function for each kind of chunk.
 */
#include "merge/read/model_rows.h"

#include "merge/read/collectives.h"
#include "merge/read/model_stack_rows.h"
#include "merge/read/model_switch_rows.h"
#include "merge/read/row_of_id.h"

/* A number of that row. Kinds with many rows look their columns up once, instead. */
#define CELL(column) xt_chunk_u64(chunk, column)[r]

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

static void load_meta(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t key = intern(model, xt_chunk_bytes(chunk, XT_META_KEY, r));
		uint32_t text = intern(model, xt_chunk_bytes(chunk, XT_META_VALUE, r));
		struct pair *pair;

		pair = pair_of_key(model->meta.rows, &model->meta.count, key);
		if (pair)
			pair->text = text;
	}
}

static void load_account(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t key = intern(model, xt_chunk_bytes(chunk, XT_ACCOUNT_NAME, r));
		struct pair *pair;

		pair = pair_of_key(model->account.rows, &model->account.count, key);
		if (pair)
			pair->value = CELL(XT_ACCOUNT_VALUE);
	}
}

static void load_threads(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_THREAD_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_THREAD_NAME, r));
		struct thread *thread;

		if (!is_possible(ids[r], model->threads.defined))
			continue;
		thread = ROW_OF_ID(model->threads, ids[r]);
		*thread = (struct thread){narrow(CELL(XT_THREAD_TID)), name};
	}
}

static void load_strings(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STRING_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_STRING_TEXT, r));
		uint32_t *string;

		if (!is_possible(ids[r], model->strings.defined))
			continue;
		string = ROW_OF_ID(model->strings, ids[r]);
		*string = name;
	}
}

static void load_apis(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_API_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_API_NAME, r));
		uint16_t place = model_api(model, ids[r]);
		size_t s = model_api_slot(ids[r]);

		if (!place) {
			if (ids[r] > UINT32_MAX || model->apis.count == MODEL_APIS_MAX)
				continue;
			place = (uint16_t)model->apis.count;
			NEXT_ROW(model->apis);
			while (model->api_slots[s])
				s = (s + 1) % (MODEL_APIS_MAX * 2);
			model->api_slots[s] = place;
		}
		/* An API of unknown class counts as one without work. */
		model->apis.rows[place] = (struct api){
			.id = (uint32_t)ids[r],
			.name = name,
			.class = CELL(XT_API_CLASS) < XT_API_CLASSES ? (uint32_t)CELL(XT_API_CLASS)
								     : XT_API_OTHER,
		};
	}
}

static void load_streams(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STREAM_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct stream *stream;

		if (!is_possible(ids[r], model->streams.defined))
			continue;
		stream = ROW_OF_ID(model->streams, ids[r]);
		*stream = (struct stream){true, narrow(CELL(XT_STREAM_DEVICE)),
					  narrow(CELL(XT_STREAM_CONTEXT)),
					  narrow(CELL(XT_STREAM_STREAM))};
	}
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

static void load_shapes(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_SHAPE_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct shape *shape;

		if (!is_possible(ids[r], model->shapes.defined))
			continue;
		shape = ROW_OF_ID(model->shapes, ids[r]);
		*shape = (struct shape){
			.string = narrow(CELL(XT_SHAPE_NAME)),
			.grid = {narrow(CELL(XT_SHAPE_GRID_X)), narrow(CELL(XT_SHAPE_GRID_X + 1)),
				 narrow(CELL(XT_SHAPE_GRID_X + 2))},
			.block = {narrow(CELL(XT_SHAPE_BLOCK_X)),
				  narrow(CELL(XT_SHAPE_BLOCK_X + 1)),
				  narrow(CELL(XT_SHAPE_BLOCK_X + 2))},
			.static_shared_bytes = CELL(XT_SHAPE_STATIC_SHARED_BYTES),
			.dynamic_shared_bytes = CELL(XT_SHAPE_DYNAMIC_SHARED_BYTES),
			.registers = narrow(CELL(XT_SHAPE_REGISTERS)),
		};
		set_collective(shape, model, CELL(XT_SHAPE_NAME));
	}
}

static void load_copy_shapes(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_COPY_SHAPE_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct copy_shape *shape;

		if (!is_possible(ids[r], model->copy_shapes.defined))
			continue;
		shape = ROW_OF_ID(model->copy_shapes, ids[r]);
		*shape = (struct copy_shape){
			.kind = narrow(CELL(XT_COPY_SHAPE_KIND)),
			.source = narrow(CELL(XT_COPY_SHAPE_SOURCE)),
			.destination = narrow(CELL(XT_COPY_SHAPE_DESTINATION)),
			.is_async = CELL(XT_COPY_SHAPE_ASYNC) != 0,
			.from_device = narrow(CELL(XT_COPY_SHAPE_FROM_DEVICE)),
			.to_device = narrow(CELL(XT_COPY_SHAPE_TO_DEVICE)),
		};
	}
}

static void load_graph_nodes(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		nodes_add(&model->nodes, &(struct node){
						 .id = CELL(XT_GRAPH_NODE_ID),
						 .origin = CELL(XT_GRAPH_NODE_ORIGIN),
						 .time_ns = CELL(XT_GRAPH_NODE_TIME_NS),
						 .stack = narrow(CELL(XT_GRAPH_NODE_STACK)),
						 .thread = narrow(CELL(XT_GRAPH_NODE_THREAD)),
						 .type = narrow(CELL(XT_GRAPH_NODE_TYPE)),
						 .autograd = narrow(CELL(XT_GRAPH_NODE_AUTOGRAD)),
						 .sequence = CELL(XT_GRAPH_NODE_SEQUENCE),
						 .node_sequence = CELL(XT_GRAPH_NODE_NODE_SEQUENCE),
					 });
}

static void load_node_names(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		nodes_add_name(&model->nodes,
			       &(struct node_name){CELL(XT_GRAPH_NODE_NAME_NODE),
						   CELL(XT_GRAPH_NODE_NAME_TIME_NS),
						   narrow(CELL(XT_GRAPH_NODE_NAME_STRING))});
}

static void load_autograd(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		autograd_add_state(&model->autograd, CELL(XT_AUTOGRAD_ID),
				   &(struct autograd_state){
					   .thread = CELL(XT_AUTOGRAD_THREAD),
					   .node_thread = CELL(XT_AUTOGRAD_NODE_THREAD),
					   .node_type = narrow(CELL(XT_AUTOGRAD_NODE_TYPE)),
					   .node_class = narrow(CELL(XT_AUTOGRAD_NODE_CLASS)),
					   .caller = narrow(CELL(XT_AUTOGRAD_CALLER)),
					   .caller_stack = narrow(CELL(XT_AUTOGRAD_CALLER_STACK)),
				   });
}

static void load_graph_updates(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		if (CELL(XT_GRAPH_UPDATE_EXEC))
			nodes_add(&model->nodes,
				  &(struct node){
					  .id = CELL(XT_GRAPH_UPDATE_NODE),
					  .time_ns = CELL(XT_GRAPH_UPDATE_TIME_NS),
					  .graph_exec = narrow(CELL(XT_GRAPH_UPDATE_EXEC)),
					  .like_graph = narrow(CELL(XT_GRAPH_UPDATE_GRAPH)),
					  .stack = narrow(CELL(XT_GRAPH_UPDATE_STACK)),
					  .thread = narrow(CELL(XT_GRAPH_UPDATE_THREAD)),
				  });
}

static void load_clocks(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		if (CELL(XT_CLOCK_MONOTONIC_NS) > model->last_clock_ns)
			model->last_clock_ns = CELL(XT_CLOCK_MONOTONIC_NS);
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

static void load_ranges(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *operations = xt_chunk_u64(chunk, XT_RANGE_OPERATION);
	const uint64_t *threads = xt_chunk_u64(chunk, XT_RANGE_THREAD);
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_RANGE_TIME_NS);
	const uint64_t *domains = xt_chunk_u64(chunk, XT_RANGE_DOMAIN);
	const uint64_t *texts = xt_chunk_u64(chunk, XT_RANGE_TEXT);
	const uint64_t *keys = xt_chunk_u64(chunk, XT_RANGE_KEY);
	const uint64_t *stacks = xt_chunk_u64(chunk, XT_RANGE_STACK);
	const uint64_t *categories = xt_chunk_u64(chunk, XT_RANGE_CATEGORY);
	const uint64_t *payloads = xt_chunk_u64(chunk, XT_RANGE_PAYLOAD);
	const uint64_t *payload_types = xt_chunk_u64(chunk, XT_RANGE_PAYLOAD_TYPE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct range_event event = {
			.time_ns = time_ns[r],
			.key = keys[r],
			.thread = narrow(threads[r]),
			.domain = narrow(domains[r]),
			.text = narrow(texts[r]),
			.stack = narrow(stacks[r]),
			.operation = narrow(operations[r]),
			.category = narrow(categories[r]),
			.payload_type = narrow(payload_types[r]),
			.payload = payloads[r],
		};

		if (names_something(&event))
			load_name(model, &event);
		else
			ranges_add(&model->ranges, &event);
	}
	collective_calls_add(&model->collective_calls, model, chunk);
}

static void load_cpu_samples(struct model *model, const struct xt_chunk *chunk)
{
	cpu_samples_load(&model->cpu_samples, chunk);
}

static void (*const load_by_kind[XT_KIND_COUNT])(struct model *, const struct xt_chunk *) = {
	[XT_KIND_META] = load_meta,
	[XT_KIND_ACCOUNT] = load_account,
	[XT_KIND_THREAD] = load_threads,
	[XT_KIND_MODULE] = model_load_modules,
	[XT_KIND_MODULE_UNLOAD] = model_load_unloads,
	[XT_KIND_STRING] = load_strings,
	[XT_KIND_STACK] = model_load_stacks,
	[XT_KIND_API] = load_apis,
	[XT_KIND_STREAM] = load_streams,
	[XT_KIND_SHAPE] = load_shapes,
	[XT_KIND_COPY_SHAPE] = load_copy_shapes,
	[XT_KIND_GRAPH_NODE] = load_graph_nodes,
	[XT_KIND_GRAPH_NODE_NAME] = load_node_names,
	[XT_KIND_CLOCK] = load_clocks,
	[XT_KIND_GRAPH_UPDATE] = load_graph_updates,
	[XT_KIND_SWITCH] = model_load_switches,
	[XT_KIND_STACK_RATE] = model_load_rates,
	[XT_KIND_RANGE] = load_ranges,
	[XT_KIND_SYMBOL] = model_load_symbols,
	[XT_KIND_PYTHON_FRAME] = model_load_python_frames,
	[XT_KIND_SOURCE] = model_load_sources,
	[XT_KIND_COMPILED] = model_load_compiled,
	[XT_KIND_AUTOGRAD] = load_autograd,
	[XT_KIND_CPU_SAMPLE] = load_cpu_samples,
};

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
