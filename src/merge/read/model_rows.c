/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds rows to the model, with one function for each kind of chunk.
 */
#include "merge/read/model_rows.h"

#include "merge/read/collectives.h"
#include "merge/read/model_stack_rows.h"
#include "merge/read/model_switch_rows.h"
#include "merge/read/row_of_id.h"

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

static int load_meta(struct model *model, const struct xt_chunk *chunk)
{
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t key = intern(model, xt_chunk_bytes(chunk, XT_META_KEY, r));
		uint32_t text = intern(model, xt_chunk_bytes(chunk, XT_META_VALUE, r));
		struct pair *pair;

		if (key == NAME_FAILED || text == NAME_FAILED)
			return -ENOMEM;
		pair = pair_of_key(model->meta.rows, &model->meta.count, key);
		if (pair)
			pair->text = text;
	}
	return 0;
}

static int load_account(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *values = xt_chunk_u64(chunk, XT_ACCOUNT_VALUE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t key = intern(model, xt_chunk_bytes(chunk, XT_ACCOUNT_NAME, r));
		struct pair *pair;

		if (key == NAME_FAILED)
			return -ENOMEM;
		pair = pair_of_key(model->account.rows, &model->account.count, key);
		if (pair)
			pair->value = values[r];
	}
	return 0;
}

static int load_threads(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_THREAD_ID);
	const uint64_t *tids = xt_chunk_u64(chunk, XT_THREAD_TID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_THREAD_NAME, r));
		struct thread *thread;

		if (!is_possible(ids[r], model->threads.defined))
			continue;
		thread = ROW_OF_ID(model->threads, ids[r]);
		if (!thread || name == NAME_FAILED)
			return -ENOMEM;
		*thread = (struct thread){narrow(tids[r]), name};
	}
	return 0;
}

static int load_strings(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STRING_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_STRING_TEXT, r));
		uint32_t *string;

		if (!is_possible(ids[r], model->strings.defined))
			continue;
		string = ROW_OF_ID(model->strings, ids[r]);
		if (!string || name == NAME_FAILED)
			return -ENOMEM;
		*string = name;
	}
	return 0;
}

static int load_apis(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_API_ID);
	const uint64_t *classes = xt_chunk_u64(chunk, XT_API_CLASS);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_API_NAME, r));
		uint16_t place = model_api(model, ids[r]);
		size_t s = model_api_slot(ids[r]);

		if (name == NAME_FAILED)
			return -ENOMEM;
		if (!place) {
			if (ids[r] > UINT32_MAX || model->apis.count == MODEL_APIS_MAX)
				continue;
			place = (uint16_t)model->apis.count;
			if (!NEXT_ROW(model->apis))
				return -ENOMEM;
			while (model->api_slots[s])
				s = (s + 1) % (MODEL_APIS_MAX * 2);
			model->api_slots[s] = place;
		}
		/* An API of unknown class counts as one without work. */
		model->apis.rows[place] = (struct api){
			.id = (uint32_t)ids[r],
			.name = name,
			.class = classes[r] < XT_API_CLASSES ? (uint32_t)classes[r] : XT_API_OTHER,
		};
	}
	return 0;
}

static int load_streams(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STREAM_ID);
	const uint64_t *devices = xt_chunk_u64(chunk, XT_STREAM_DEVICE);
	const uint64_t *contexts = xt_chunk_u64(chunk, XT_STREAM_CONTEXT);
	const uint64_t *streams = xt_chunk_u64(chunk, XT_STREAM_STREAM);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct stream *stream;

		if (!is_possible(ids[r], model->streams.defined))
			continue;
		stream = ROW_OF_ID(model->streams, ids[r]);
		if (!stream)
			return -ENOMEM;
		*stream = (struct stream){true, narrow(devices[r]), narrow(contexts[r]),
					  narrow(streams[r])};
	}
	return 0;
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

static int load_shapes(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_SHAPE_ID);
	const uint64_t *names = xt_chunk_u64(chunk, XT_SHAPE_NAME);
	const uint64_t *static_bytes = xt_chunk_u64(chunk, XT_SHAPE_STATIC_SHARED_BYTES);
	const uint64_t *dynamic_bytes = xt_chunk_u64(chunk, XT_SHAPE_DYNAMIC_SHARED_BYTES);
	const uint64_t *registers = xt_chunk_u64(chunk, XT_SHAPE_REGISTERS);
	const uint64_t *grid[3], *block[3];

	for (unsigned i = 0; i < 3; i++) {
		grid[i] = xt_chunk_u64(chunk, XT_SHAPE_GRID_X + i);
		block[i] = xt_chunk_u64(chunk, XT_SHAPE_BLOCK_X + i);
	}
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct shape *shape;

		if (!is_possible(ids[r], model->shapes.defined))
			continue;
		shape = ROW_OF_ID(model->shapes, ids[r]);
		if (!shape)
			return -ENOMEM;
		*shape = (struct shape){
			.string = narrow(names[r]),
			.grid = {narrow(grid[0][r]), narrow(grid[1][r]), narrow(grid[2][r])},
			.block = {narrow(block[0][r]), narrow(block[1][r]), narrow(block[2][r])},
			.static_shared_bytes = static_bytes[r],
			.dynamic_shared_bytes = dynamic_bytes[r],
			.registers = narrow(registers[r]),
		};
		set_collective(shape, model, names[r]);
	}
	return 0;
}

static int load_copy_shapes(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_COPY_SHAPE_ID);
	const uint64_t *kinds = xt_chunk_u64(chunk, XT_COPY_SHAPE_KIND);
	const uint64_t *sources = xt_chunk_u64(chunk, XT_COPY_SHAPE_SOURCE);
	const uint64_t *destinations = xt_chunk_u64(chunk, XT_COPY_SHAPE_DESTINATION);
	const uint64_t *async = xt_chunk_u64(chunk, XT_COPY_SHAPE_ASYNC);
	const uint64_t *from_devices = xt_chunk_u64(chunk, XT_COPY_SHAPE_FROM_DEVICE);
	const uint64_t *to_devices = xt_chunk_u64(chunk, XT_COPY_SHAPE_TO_DEVICE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct copy_shape *shape;

		if (!is_possible(ids[r], model->copy_shapes.defined))
			continue;
		shape = ROW_OF_ID(model->copy_shapes, ids[r]);
		if (!shape)
			return -ENOMEM;
		*shape = (struct copy_shape){
			.kind = narrow(kinds[r]),
			.source = narrow(sources[r]),
			.destination = narrow(destinations[r]),
			.is_async = async[r] != 0,
			.from_device = narrow(from_devices[r]),
			.to_device = narrow(to_devices[r]),
		};
	}
	return 0;
}

static int load_graph_nodes(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_GRAPH_NODE_ID);
	const uint64_t *origins = xt_chunk_u64(chunk, XT_GRAPH_NODE_ORIGIN);
	const uint64_t *stacks = xt_chunk_u64(chunk, XT_GRAPH_NODE_STACK);
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_GRAPH_NODE_TIME_NS);
	const uint64_t *threads = xt_chunk_u64(chunk, XT_GRAPH_NODE_THREAD);
	const uint64_t *types = xt_chunk_u64(chunk, XT_GRAPH_NODE_TYPE);
	const uint64_t *sequences = xt_chunk_u64(chunk, XT_GRAPH_NODE_SEQUENCE);
	const uint64_t *states = xt_chunk_u64(chunk, XT_GRAPH_NODE_AUTOGRAD);
	const uint64_t *node_sequences = xt_chunk_u64(chunk, XT_GRAPH_NODE_NODE_SEQUENCE);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = nodes_add(&model->nodes, &(struct node){
							 .id = ids[r],
							 .origin = origins[r],
							 .time_ns = time_ns[r],
							 .stack = narrow(stacks[r]),
							 .thread = narrow(threads[r]),
							 .type = narrow(types[r]),
							 .autograd = narrow(states[r]),
							 .sequence = sequences[r],
							 .node_sequence = node_sequences[r],
						 });
	return error;
}

static int load_node_names(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_GRAPH_NODE_NAME_NODE);
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_GRAPH_NODE_NAME_TIME_NS);
	const uint64_t *strings = xt_chunk_u64(chunk, XT_GRAPH_NODE_NAME_STRING);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = nodes_add_name(&model->nodes,
				       &(struct node_name){ids[r], time_ns[r], narrow(strings[r])});
	return error;
}

static int load_autograd(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_AUTOGRAD_ID);
	const uint64_t *threads = xt_chunk_u64(chunk, XT_AUTOGRAD_THREAD);
	const uint64_t *types = xt_chunk_u64(chunk, XT_AUTOGRAD_NODE_TYPE);
	const uint64_t *classes = xt_chunk_u64(chunk, XT_AUTOGRAD_NODE_CLASS);
	const uint64_t *node_threads = xt_chunk_u64(chunk, XT_AUTOGRAD_NODE_THREAD);
	const uint64_t *callers = xt_chunk_u64(chunk, XT_AUTOGRAD_CALLER);
	const uint64_t *stacks = xt_chunk_u64(chunk, XT_AUTOGRAD_CALLER_STACK);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = autograd_add_state(&model->autograd, ids[r],
					   &(struct autograd_state){
						   .thread = threads[r],
						   .node_thread = node_threads[r],
						   .node_type = narrow(types[r]),
						   .node_class = narrow(classes[r]),
						   .caller = narrow(callers[r]),
						   .caller_stack = narrow(stacks[r]),
					   });
	return error;
}

static int load_graph_updates(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_GRAPH_UPDATE_NODE);
	const uint64_t *execs = xt_chunk_u64(chunk, XT_GRAPH_UPDATE_EXEC);
	const uint64_t *stacks = xt_chunk_u64(chunk, XT_GRAPH_UPDATE_STACK);
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_GRAPH_UPDATE_TIME_NS);
	const uint64_t *threads = xt_chunk_u64(chunk, XT_GRAPH_UPDATE_THREAD);
	const uint64_t *graphs = xt_chunk_u64(chunk, XT_GRAPH_UPDATE_GRAPH);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		if (execs[r])
			error = nodes_add(&model->nodes, &(struct node){
								 .id = ids[r],
								 .time_ns = time_ns[r],
								 .graph_exec = narrow(execs[r]),
								 .like_graph = narrow(graphs[r]),
								 .stack = narrow(stacks[r]),
								 .thread = narrow(threads[r]),
							 });
	return error;
}

static int load_clocks(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_CLOCK_MONOTONIC_NS);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		if (time_ns[r] > model->last_clock_ns)
			model->last_clock_ns = time_ns[r];
	return 0;
}

static bool names_something(const struct range_event *event)
{
	return event->operation >= XT_RANGE_NAME_THREAD && event->operation <= XT_RANGE_NAME_EVENT;
}

/* Names of events are not shown. */
static int load_name(struct model *model, const struct range_event *event)
{
	switch (event->operation) {
	case XT_RANGE_NAME_THREAD:
		return range_names_add(&model->thread_names, 0, event->key, event->text);
	case XT_RANGE_NAME_CATEGORY:
		return range_names_add(&model->category_names, event->domain, event->key,
				       event->text);
	case XT_RANGE_NAME_DEVICE:
		return range_names_add(&model->device_names, 0, event->key, event->text);
	case XT_RANGE_NAME_CONTEXT:
		return range_names_add(&model->context_names, 0, event->key, event->text);
	case XT_RANGE_NAME_STREAM:
		return range_names_add(&model->stream_names, narrow(event->payload), event->key,
				       event->text);
	default:
		return 0;
	}
}

static int load_ranges(struct model *model, const struct xt_chunk *chunk)
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
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
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
			error = load_name(model, &event);
		else
			error = ranges_add(&model->ranges, &event);
	}
	return error ? error : collective_calls_add(&model->collective_calls, model, chunk);
}

static int load_cpu_samples(struct model *model, const struct xt_chunk *chunk)
{
	return cpu_samples_load(&model->cpu_samples, chunk);
}

static int (*const load_by_kind[XT_KIND_COUNT])(struct model *, const struct xt_chunk *) = {
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

int model_add_rows(struct model *model, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);

	model->rows_read[kind] += xt_chunk_rows(chunk);
	return load_by_kind[kind] ? load_by_kind[kind](model, chunk) : 0;
}

/* Includes END, which is only checked. */
uint32_t model_row_kinds(void)
{
	uint32_t wanted = 1u << XT_KIND_END;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		wanted |= load_by_kind[kind] ? 1u << kind : 0;
	return wanted;
}
