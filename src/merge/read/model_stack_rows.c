/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads what call stacks refer to: modules, stacks, Python frames, embedded symbols and lines.
 */
#include "merge/read/model_stack_rows.h"

#include <string.h>

#include "base/memory.h"
#include "merge/read/row_of_id.h"

/* A number of that row. Kinds with many rows look their columns up once, instead. */
#define CELL(column) xt_chunk_u64(chunk, column)[r]

#define FRAMES_MAX XT_STACK_FRAMES_MAX /* per stack; further frames are dropped */

void model_load_modules(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_MODULE_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t path = intern(model, xt_chunk_bytes(chunk, XT_MODULE_PATH, r));
		uint32_t build_id = intern(model, xt_chunk_bytes(chunk, XT_MODULE_BUILD_ID, r));
		struct module *module;

		if (!is_possible(ids[r], model->modules.defined))
			continue;
		module = NEXT_ROW(model->modules);
		xt_grow(&model->module_places, &model->module_place_capacity, ids[r] + 1,
			sizeof(*model->module_places));
		model->module_places[ids[r]] = (uint32_t)(module - model->modules.rows);
		*module = (struct module){
			.load_ns = CELL(XT_MODULE_LOAD_NS),
			.unload_ns = UINT64_MAX,
			.seen_ns = UINT64_MAX,
			.start = CELL(XT_MODULE_START),
			.end = CELL(XT_MODULE_END),
			.bias = CELL(XT_MODULE_BIAS),
			.id = (uint32_t)ids[r],
			.path = path,
			.build_id = build_id,
		};
	}
}

void model_load_unloads(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_MODULE_UNLOAD_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t place =
			ids[r] < model->module_place_capacity ? model->module_places[ids[r]] : 0;

		if (place)
			model->modules.rows[place].unload_ns = CELL(XT_MODULE_UNLOAD_NS);
	}
}

void model_load_python_frames(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_PYTHON_FRAME_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct python_frame *frame;

		if (!is_possible(ids[r], model->python_frames.defined))
			continue;
		frame = ROW_OF_ID(model->python_frames, ids[r]);
		*frame = (struct python_frame){
			.name = narrow(CELL(XT_PYTHON_FRAME_NAME)),
			.file = narrow(CELL(XT_PYTHON_FRAME_FILE)),
			.line = narrow(CELL(XT_PYTHON_FRAME_LINE)),
			.first_line = narrow(CELL(XT_PYTHON_FRAME_FIRST_LINE)),
		};
	}
}

/* Loads the Python frames of a stack. Skips frames without a place. */
static void load_python(struct model *model, struct stack *stack, const struct xt_chunk *chunk,
			uint32_t row)
{
	uint32_t count, place_count;
	const uint64_t *frames = xt_chunk_list(chunk, XT_STACK_PYTHON, row, &count);
	const uint64_t *places = xt_chunk_list(chunk, XT_STACK_PLACES, row, &place_count);

	count = count < place_count ? count : place_count;
	count = count < FRAMES_MAX ? count : FRAMES_MAX;
	xt_grow(&model->python, &model->python_capacity, model->python_count + count,
		sizeof(*model->python));
	stack->first_python = model->python_count;
	stack->python_count = count;
	for (uint32_t i = 0; i < count; i++)
		model->python[model->python_count++] = (struct python_place){
			.frame = narrow(frames[i]),
			.place = places[i] < stack->frame_count ? (uint32_t)places[i]
								: stack->frame_count,
		};
}

/* Loads the module of each frame. Logs before version 2.3 lack them. */
static void load_frame_modules(struct model *model, struct stack *stack,
			       const struct xt_chunk *chunk, uint32_t row)
{
	uint32_t count;
	const uint64_t *ids = xt_chunk_list(chunk, XT_STACK_MODULES, row, &count);
	uint32_t *modules;

	xt_grow(&model->frame_modules, &model->frame_module_capacity,
		model->frame_count + stack->frame_count, sizeof(*modules));
	modules = model->frame_modules + model->frame_count;
	stack->has_modules = count >= stack->frame_count;
	for (uint32_t f = 0; f < stack->frame_count; f++)
		modules[f] = stack->has_modules ? narrow(ids[f]) : 0;
}

void model_load_stacks(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STACK_ID);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t length;
		const uint64_t *frames = xt_chunk_list(chunk, XT_STACK_FRAMES, r, &length);
		struct stack *stack;

		if (!is_possible(ids[r], model->stacks.defined))
			continue;
		stack = ROW_OF_ID(model->stacks, ids[r]);
		*stack = (struct stack){
			.first_frame = model->frame_count,
			.frame_count = length > FRAMES_MAX ? FRAMES_MAX : length,
			.flags = (uint32_t)CELL(XT_STACK_FLAGS) |
				 (length > FRAMES_MAX ? XT_STACK_TRUNCATED : 0),
			.seen_ns = CELL(XT_STACK_SEEN_NS),
		};
		load_python(model, stack, chunk, r);
		if (!stack->frame_count)
			continue;
		load_frame_modules(model, stack, chunk, r);
		xt_grow(&model->frames, &model->frame_capacity,
			model->frame_count + stack->frame_count, sizeof(*frames));
		memcpy(model->frames + model->frame_count, frames,
		       stack->frame_count * sizeof(*frames));
		model->frame_count += stack->frame_count;
	}
}

void model_load_symbols(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *modules = xt_chunk_u64(chunk, XT_SYMBOL_MODULE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t name = intern(model, xt_chunk_bytes(chunk, XT_SYMBOL_NAME, r));
		struct embedded_symbol *symbol;

		if (modules[r] > MODEL_IDS_MAX || model->symbols.count > MODEL_IDS_MAX)
			continue;
		symbol = NEXT_ROW(model->symbols);
		*symbol = (struct embedded_symbol){CELL(XT_SYMBOL_START), CELL(XT_SYMBOL_BYTES),
						   (uint32_t)modules[r], name};
	}
}

void model_load_sources(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *modules = xt_chunk_u64(chunk, XT_SOURCE_MODULE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct place place = {
			.function = intern(model, xt_chunk_bytes(chunk, XT_SOURCE_FUNCTION, r)),
			.file = intern(model, xt_chunk_bytes(chunk, XT_SOURCE_FILE, r)),
			.line = narrow(CELL(XT_SOURCE_LINE)),
		};
		uint32_t order = (uint32_t)model->sources.count;
		struct embedded_source *source;

		if (modules[r] > MODEL_IDS_MAX || model->sources.count > MODEL_IDS_MAX)
			continue;
		source = NEXT_ROW(model->sources);
		*source = (struct embedded_source){CELL(XT_SOURCE_ADDRESS), (uint32_t)modules[r],
						   order, place};
	}
}

void model_load_compiled(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *frames = xt_chunk_u64(chunk, XT_COMPILED_FRAME);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct place place = {
			.function = intern(model, xt_chunk_bytes(chunk, XT_COMPILED_FUNCTION, r)),
			.file = intern(model, xt_chunk_bytes(chunk, XT_COMPILED_FILE, r)),
			.line = narrow(CELL(XT_COMPILED_LINE)),
		};
		struct compiled_place *compiled;

		if (frames[r] > MODEL_IDS_MAX || model->compiled.count > MODEL_IDS_MAX)
			continue;
		compiled = NEXT_ROW(model->compiled);
		*compiled = (struct compiled_place){(uint32_t)frames[r],
						    narrow(CELL(XT_COMPILED_TRACE)), place};
	}
}
