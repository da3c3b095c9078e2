/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds call paths from stacks. Shows only the program, and the runtime function it called.
 */
#include "merge/naming/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/naming/compiled_frames.h"
#include "merge/naming/frame_names.h"
#include "merge/naming/frame_roles.h"

/* State shared by all stacks. */
struct frames_context {
	const struct model *model;
	const struct addresses *addresses;
	struct paths *paths;
	const struct frame_style *style;
	struct frame_roles roles;
	struct frame_names names;
	struct compiled_frames compiled;
};

void frames_merge(const struct frames *frames, const struct model *model, uint32_t stack,
		  struct frame_merge *merge)
{
	const struct stack *row = &model->stacks.rows[stack];

	frame_merge_begin(merge, model, row, frames->shown[stack].first, frames->shown[stack].end,
			  frames->python);
	if (frames->python != PYTHON_MIXED || !row->python_count)
		return;
	merge->addresses = frames->by_frame + row->first_frame;
	merge->hidden = frames->of_interpreter;
}

/*
 * Adds a native frame below node: the function, then functions inlined into it. Skips glue between
 * the program and CUDA.
 */
static uint32_t add_native(struct frames_context *c, uint32_t node, uint32_t a)
{
	const struct address *address = &c->addresses->list[a];
	const struct place *places = c->addresses->places;
	size_t first = address->first_place, last = first + address->place_count;

	if (c->roles.roles[a] == ROLE_PLT)
		return node;
	node = paths_child(c->paths, node, frame_native_name(&c->names, a));
	while (first + 1 < last &&
	       frame_role_of_name(names_text(&c->model->names, places[first].function, NULL)) ==
		       ROLE_GLUE)
		first++;
	if (last > first + 1 && model_is_of_c_runtime(c->model, address->module))
		return node;
	for (size_t p = last; c->style->inlines && p-- > first + 1;)
		node = paths_child(c->paths, node, frame_inlined_name(&c->names, a, p - 1));
	return node;
}

static uint32_t add_item(struct frames_context *c, uint32_t node, const struct path_item *item)
{
	switch (item->kind) {
	case MERGED_PYTHON:
		return compiled_frames_add(&c->compiled, &c->names, node, item->value);
	case MERGED_TRUNCATED:
		return paths_child(
			c->paths, node,
			names_intern(&c->paths->names, FRAME_TRUNCATED, strlen(FRAME_TRUNCATED)));
	case MERGED_LABEL:
		return paths_child(c->paths, node, item->value);
	case MERGED_NATIVE:
		break;
	}
	return add_native(c, node, item->value);
}

static struct path_item item_of(const struct merged_frame *frame, const uint32_t *addresses)
{
	return (struct path_item){
		frame->kind, frame->kind == MERGED_NATIVE ? addresses[frame->index] : frame->index};
}

uint32_t frames_add_item(const struct frames *frames, uint32_t node, const struct path_item *item)
{
	return add_item(frames->context, node, item);
}

bool frames_python_line(const struct frames *frames, uint32_t id, uint32_t n,
			struct python_line *line)
{
	return compiled_frames_line(&frames->context->compiled, &frames->context->names, id, n,
				    line);
}

void frames_list(const struct frames *frames, uint32_t stack, struct path_items *list)
{
	const uint32_t *addresses =
		frames->by_frame + frames->model->stacks.rows[stack].first_frame;
	struct merged_frame frame;
	struct frame_merge merge;

	frames_merge(frames, frames->model, stack, &merge);
	while (frame_merge_next(&merge, &frame)) {
		xt_append(list->items, list->count, list->capacity, item_of(&frame, addresses));
	}
}

/* Adds one stack to the tree, outermost frame first. */
static void build_stack(struct frames *out, struct frames_context *c, uint32_t id)
{
	const struct stack *stack = &c->model->stacks.rows[id];
	const uint32_t *frames = c->addresses->by_frame + stack->first_frame;
	struct shown_frames *shown = &out->shown[id];
	uint32_t node = out->root, api;
	struct merged_frame frame;
	struct frame_merge merge;

	frame_roles_trim(&c->roles, stack, frames, c->style->python != PYTHON_OFF, &shown->first,
			 &shown->end, &api);
	if (api < stack->frame_count) {
		uint32_t name = c->addresses->list[frames[api]].name;

		out->api_names[id] =
			frame_api_name(&c->paths->names, names_text(&c->model->names, name, NULL));
	}
	frames_merge(out, c->model, id, &merge);
	while (frame_merge_next(&merge, &frame)) {
		struct path_item item = item_of(&frame, frames);

		node = add_item(c, node, &item);
	}
	if (stack->flags & XT_STACK_PYTHON_CHANGED && c->style->python != PYTHON_OFF)
		node = paths_child(c->paths, node,
				   names_intern(&c->paths->names, FRAME_PYTHON_CHANGED,
						strlen(FRAME_PYTHON_CHANGED)));
	out->nodes[id] = node;
}

static void build_apis(struct frames *frames, const struct model *model, struct paths *paths)
{
	for (size_t a = 0; a < frames->api_count; a++) {
		const char *name = names_text(&model->names, model->apis.rows[a].name, NULL);

		frames->api_shown[a] =
			frame_api_name(&paths->names, name[0] ? name : "[unknown API]");
	}
}

void frames_build(struct frames *frames, const struct model *model,
		  const struct addresses *addresses, const struct frame_style *style,
		  struct demangle_cache *cache, struct file_names *files, struct paths *paths,
		  uint32_t root)
{
	struct frames_context *c = xt_calloc(1, sizeof(*c));

	*c = (struct frames_context){
		.model = model,
		.addresses = addresses,
		.paths = paths,
		.style = style,
		.names = {.model = model,
			  .addresses = addresses,
			  .cache = cache,
			  .names = &paths->names,
			  .paths = paths,
			  .files = files,
			  .user_files = style->user_files_compiled,
			  .redaction = style->redaction,
			  .lines = style->lines},
	};
	*frames = (struct frames){
		.model = model,
		.addresses = addresses,
		.paths = paths,
		.context = c,
		.joined = xt_calloc(1, sizeof(struct joined_paths)),
		.backward = style->backward,
		.root = root,
		.stack_count = model->stacks.count,
		.api_count = model->apis.count,
		.nodes = xt_calloc(model->stacks.count, sizeof(uint32_t)),
		.api_names = xt_calloc(model->stacks.count, sizeof(uint32_t)),
		.shown = xt_calloc(model->stacks.count, sizeof(struct shown_frames)),
		.python = style->python,
		.api_shown = xt_calloc(model->apis.count, sizeof(uint32_t)),
		.of_interpreter = xt_calloc(addresses->count + 1, sizeof(uint8_t)),
		.by_frame = addresses->by_frame,
	};
	for (uint32_t a = 0; a < addresses->count; a++)
		frames->of_interpreter[a] = frame_is_of_interpreter(model, &addresses->list[a]);
	frame_roles_find(&c->roles, model, addresses);
	compiled_frames_find(&c->compiled, model);
	frame_names_begin(&c->names);
	frames->address_names = c->names.native;
	frames->place_names = c->names.inlined;
	build_apis(frames, model, paths);
	frames->nodes[0] = PATH_FAILED;
	for (uint32_t id = 1; id < frames->stack_count; id++) {
		frames->nodes[id] = PATH_FAILED;
		if (model_has_stack(model, id))
			build_stack(frames, c, id);
	}
}

static void free_joined(struct joined_paths *joined)
{
	for (size_t i = 0; joined && i < joined->count; i++)
		free(joined->list[i].items.items);
	if (joined)
		free(joined->list);
	free(joined);
}

void frames_free(struct frames *frames)
{
	if (frames->context) {
		frame_names_end(&frames->context->names);
		free(frames->context->names.python);
		compiled_frames_free(&frames->context->compiled);
		frame_roles_free(&frames->context->roles);
		free(frames->context);
	}
	free_joined(frames->joined);
	free(frames->nodes);
	free(frames->api_names);
	free(frames->api_shown);
	free(frames->shown);
	free(frames->address_names);
	free(frames->of_interpreter);
	free(frames->place_names);
	*frames = (struct frames){0};
}
