/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds call paths from stacks. Shows only the program, and the runtime function it called. Roles
 * are found by the names of functions and modules. Each Python frame stores the index of the native
 * frame that runs it.
 *
 * Frames of code that torch.compile generated are replaced by the user's lines:
 *
 *	forward (model.py:25);forward (model.py:13) [fused: model.py:13 model.py:15]
 *
 * If the lines are unknown, the frame stays and names its source nodes:
 *
 *	Runner.call (cxyz.py:437) [linear, gelu]
 */
#include "merge/naming/frames.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/symbolize/compiled_lines.h"
#include "merge/symbolize/symbols.h"

#define RUNTIME_FRAMES_MAX 16 /* greater than the depth of the runtime */

enum match { MATCH_WHOLE, MATCH_PREFIX };

/* Roles by mangled name. */
static const struct {
	const char *name;
	enum match match;
	enum role role;
} named_roles[] = {
	{"__cudart", MATCH_PREFIX, ROLE_RUNTIME},
	{"libcudart_static_", MATCH_PREFIX, ROLE_RUNTIME},
	{"_ZL25__cudaLaunchKernel_helper", MATCH_PREFIX, ROLE_GLUE},
	{"_Z16cudaLaunchKernelI", MATCH_PREFIX, ROLE_GLUE},
	{"_ZL16cudaLaunchKernelI", MATCH_PREFIX, ROLE_GLUE},
	{"_start", MATCH_WHOLE, ROLE_THREAD_START},
	{"__libc_start_main", MATCH_PREFIX, ROLE_THREAD_START},
	{"__libc_start_call_main", MATCH_WHOLE, ROLE_THREAD_START},
	{"start_thread", MATCH_WHOLE, ROLE_THREAD_START},
	{"clone", MATCH_WHOLE, ROLE_THREAD_START},
	{"__clone", MATCH_WHOLE, ROLE_THREAD_START},
	{"clone3", MATCH_WHOLE, ROLE_THREAD_START},
	{"__clone3", MATCH_WHOLE, ROLE_THREAD_START},
};

/*
 * Matches "cudaX…", and "__cudaX…" as in the headers. These are C names, so they are not mangled. A
 * program may have such names too. Outside libcudart.so, accept only names that begin like
 * functions that reach the GPU: the runtime may be linked statically.
 */
static bool is_runtime_api(const char *name, bool in_library)
{
	static const char *const subjects[] = {"Launch", "Graph", "Mem",    "Malloc", "Free",
					       "Stream", "Event", "Device", "Host"};

	if (!strncmp(name, "__", 2))
		name += 2;
	if (strncmp(name, "cuda", 4) || !isupper((unsigned char)name[4]))
		return false;
	return in_library || BEGINS_WITH_ANY(name + 4, subjects);
}

static bool is_libc(const char *file_name)
{
	return module_is_library(file_name, "libc.so") ||
	       module_is_library(file_name, "libpthread.so");
}

/* Matches extension modules of Python's standard library, and libffi, which ctypes uses. */
static bool is_of_standard_library(const char *path, const char *file_name)
{
	static const char folder[] = "/lib-dynload/";
	size_t length = (size_t)(file_name - path);

	return module_is_library(file_name, "libffi.so") ||
	       (length >= strlen(folder) &&
		!memcmp(file_name - strlen(folder), folder, strlen(folder)));
}

bool frame_is_interpreter(const struct model *model, uint32_t module)
{
	const char *path = names_text(&model->names, model->modules.rows[module].path, NULL);
	const char *rest = module_file_name(model, module);

	if (!module)
		return false;
	if (is_of_standard_library(path, rest))
		return true;
	if (!strncmp(rest, "lib", 3))
		rest += 3;
	if (strncmp(rest, "python", 6) != 0)
		return false;
	rest += 6;
	rest += strspn(rest, "0123456789.");
	rest += strspn(rest, "tdm"); /* build flavour */
	if (!strncmp(rest, ".so", 3) || (rest[-1] == '.' && !strncmp(rest, "so", 2)))
		return true;
	return !rest[0] || !strcmp(rest, " (deleted)");
}

bool frame_is_of_interpreter(const struct model *model, const struct address *address)
{
	if (address->module)
		return frame_is_interpreter(model, address->module);
	return !strncmp(names_text(&model->names, address->name, NULL), "py::", 4);
}

uint32_t frame_hidden_interpreter(const struct model *model, const struct addresses *addresses)
{
	static const char *const loops[] = {"_PyEval_EvalFrameDefault",
					    "pypy_g_"}; /* CPython, PyPy */

	if (model_meta(model, "python.path")[0] || model_meta(model, "python.off")[0])
		return 0;
	for (uint32_t a = 0; a < addresses->count; a++) {
		const char *name = names_text(&model->names, addresses->list[a].name, NULL);

		if (BEGINS_WITH_ANY(name, loops) &&
		    !frame_is_interpreter(model, addresses->list[a].module))
			return addresses->list[a].module;
	}
	return 0;
}

/* Returns the role that a mangled name implies, ROLE_PROGRAM if none. */
static enum role frame_role_of_name(const char *name)
{
	for (size_t i = 0; i < sizeof(named_roles) / sizeof(named_roles[0]); i++) {
		size_t compared =
			strlen(named_roles[i].name) + (named_roles[i].match == MATCH_WHOLE ? 1 : 0);

		if (!strncmp(name, named_roles[i].name, compared))
			return named_roles[i].role;
	}
	if (!strncmp(name, "__device_stub__", 15) || strstr(name, "__device_stub__Z"))
		return ROLE_GLUE;
	return ROLE_PROGRAM;
}

static enum role role_of(const struct model *model, const struct address *address)
{
	const char *name = names_text(&model->names, address->name, NULL);
	const char *file_name = module_file_name(model, address->module);
	bool in_library = module_is_library(file_name, "libcudart.so");
	enum role role;

	if (address->module && module_is_driver(model, address->module))
		return ROLE_DRIVER;
	if (ends_with(name, SYMBOLS_PLT))
		return ROLE_PLT;
	role = frame_role_of_name(name);
	if (role != ROLE_PROGRAM)
		return role;
	if (is_runtime_api(name, in_library))
		return ROLE_RUNTIME_API;
	if (in_library)
		return ROLE_RUNTIME;
	if (address->name != NAME_EMPTY || !address->module)
		return ROLE_PROGRAM;
	/* A stripped C library has no name for its thread start. */
	return is_libc(file_name) ? ROLE_THREAD_START : ROLE_UNNAMED;
}

/*
 * Returns the index of the program's first frame in frames[0 .. count). *api_out is the frame of
 * the runtime function it called, or count. A static runtime may have kept only the names of its
 * API. Therefore unnamed frames count as runtime if an API function of the same module follows.
 */
static uint32_t skip_cuda(const struct frame_roles *r, const uint32_t *frames, uint32_t count,
			  uint32_t *api_out)
{
	uint32_t first = 0, unnamed_module = 0;

	*api_out = count;
	while (first < count &&
	       (r->roles[frames[first]] == ROLE_DRIVER || r->roles[frames[first]] == ROLE_PLT))
		first++;
	for (uint32_t f = first; f < count && f < first + RUNTIME_FRAMES_MAX; f++) {
		enum role role = r->roles[frames[f]];
		uint32_t module = r->addresses->list[frames[f]].module;

		if (role == ROLE_UNNAMED && *api_out == count &&
		    (!unnamed_module || unnamed_module == module)) {
			unnamed_module = module;
			continue;
		}
		if (unnamed_module && *api_out == count &&
		    (role != ROLE_RUNTIME_API || module != unnamed_module))
			break;
		if (role == ROLE_RUNTIME_API)
			*api_out = f;
		else if (role != ROLE_RUNTIME && role != ROLE_PLT)
			break;
		first = f + 1;
	}
	while (first < count && r->roles[frames[first]] == ROLE_GLUE)
		first++;
	return first;
}

/*
 * Returns the end of the shown frames. Skips those that start the thread and, if the stack begins
 * with Python, those that start the interpreter.
 */
static uint32_t skip_start(const struct frame_roles *r, const struct stack *stack,
			   const uint32_t *frames, uint32_t first, bool has_python)
{
	uint32_t end = stack->frame_count, place = end;

	/* _start has no name in a stripped program. */
	if (end > first + 1 && r->roles[frames[end - 1]] == ROLE_UNNAMED &&
	    r->roles[frames[end - 2]] == ROLE_THREAD_START)
		end--;
	while (end > first && r->roles[frames[end - 1]] == ROLE_THREAD_START)
		end--;
	/* The first function of a std::thread, called by the C library. */
	if (end > first && end < stack->frame_count &&
	    module_is_library(
		    module_file_name(r->model, r->addresses->list[frames[end - 1]].module),
		    "libstdc++.so"))
		end--;
	if (stack->python_count && has_python)
		place = r->model->python.list[stack->first_python + stack->python_count - 1].place;
	if (place < first || place >= end)
		return end;
	for (uint32_t f = place + 1; f < end; f++)
		if (r->roles[frames[f]] != ROLE_THREAD_START &&
		    !frame_is_of_interpreter(r->model, &r->addresses->list[frames[f]]))
			return end;
	return place + 1;
}

void frame_roles_trim(const struct frame_roles *roles, const struct stack *stack,
		      const uint32_t *frames, bool has_python, uint32_t *first_out,
		      uint32_t *end_out, uint32_t *api_out)
{
	*first_out = skip_cuda(roles, frames, stack->frame_count, api_out);
	*end_out = skip_start(roles, stack, frames, *first_out, has_python);
}

void frame_roles_find(struct frame_roles *roles, const struct model *model,
		      const struct addresses *addresses)
{
	*roles = (struct frame_roles){
		.model = model,
		.addresses = addresses,
		.roles = xt_calloc(addresses->count + 1, sizeof(*roles->roles)),
	};
	for (uint32_t a = 0; a < addresses->count; a++)
		roles->roles[a] = (uint8_t)role_of(model, &addresses->list[a]);
}

void frame_roles_free(struct frame_roles *roles)
{
	free(roles->roles);
	roles->roles = NULL;
}

struct compiled_frames {
	const struct model *model;
	uint32_t *first;	 /* by XT_PYTHON_FRAME_ID: index in the model's compiled; 0: none */
	uint8_t *file_has_lines; /* by XT_STRING_ID of a generated file */
};

#define PLACES_SHOWN_MAX 16
#define ROWS_MAX	 4096 /* of a frame; a damaged log may have more */

/* Call compiled_frames_free() in both cases. */
static void compiled_frames_find(struct compiled_frames *frames, const struct model *model)
{
	*frames = (struct compiled_frames){
		.model = model,
		.first = xt_calloc(model->python_frames.count + 1, sizeof(*frames->first)),
		.file_has_lines = xt_calloc(model->strings.count + 1, 1),
	};
	for (uint32_t r = 1; r < model->compiled.count; r++) {
		const struct compiled_place *row = &model->compiled.rows[r];
		uint32_t first, file;

		if (!row->frame || row->frame >= model->python_frames.count)
			continue;
		/* Lines that were added later replace the names of the source nodes. */
		first = frames->first[row->frame];
		if (!first || (row->trace && !model->compiled.rows[first].trace))
			frames->first[row->frame] = r;
		file = model->python_frames.rows[row->frame].file;
		if (row->trace && file < model->strings.count)
			frames->file_has_lines[file] = 1;
	}
}

static void compiled_frames_free(struct compiled_frames *frames)
{
	free_all(frames->first, frames->file_has_lines);
	*frames = (struct compiled_frames){0};
}

/* Returns the number of rows of a frame, which follow its first row. */
static uint32_t row_count(const struct compiled_frames *frames, uint32_t id)
{
	const struct model *model = frames->model;
	uint32_t first = frames->first[id], end = first;

	while (first && end < model->compiled.count && end - first < ROWS_MAX &&
	       model->compiled.rows[end].frame == id)
		end++;
	return end - first;
}

/* Returns the number of rows of the trace that begins at this row. */
static uint32_t trace_length(const struct compiled_place *rows, uint32_t count)
{
	uint32_t length = 1;

	while (length < count && rows[length].trace == rows[0].trace)
		length++;
	return length;
}

static uint32_t place_name(struct frame_names *names, const struct place *place)
{
	const struct names *texts = &names->model->names;

	return frame_line_name(names, names_text(texts, place->function, NULL),
			       names_text(texts, place->file, NULL), place->line);
}

static bool is_shown(const struct place *shown, uint32_t count, const struct place *place)
{
	for (uint32_t i = 0; i < count; i++)
		if (shown[i].file == place->file && shown[i].line == place->line)
			return true;
	return false;
}

/* Collects the distinct innermost lines of all traces. Returns their number. */
static uint32_t list_places(const struct compiled_place *rows, uint32_t count,
			    struct place places[PLACES_SHOWN_MAX])
{
	uint32_t shown = 0;

	for (uint32_t r = 0; r < count && shown < PLACES_SHOWN_MAX;) {
		const struct place *innermost;

		r += trace_length(rows + r, count - r);
		innermost = &rows[r - 1].place;
		if (!is_shown(places, shown, innermost))
			places[shown++] = *innermost;
	}
	return shown;
}

/* "forward (model.py:13) [fused: model.py:13 model.py:15]" */
static uint32_t fused_name(struct frame_names *names, const struct compiled_place *rows,
			   uint32_t count)
{
	struct place places[PLACES_SHOWN_MAX] = {0};
	uint32_t shown = list_places(rows, count, places);
	uint32_t name = place_name(names, &places[0]);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;

	if (shown == 1)
		return name;
	out = xt_open_memstream(&text, &bytes);
	fputs("[fused:", out);
	for (uint32_t i = 0; i < shown; i++)
		fprintf(out, " %s:%u",
			frame_shown_file(names,
					 names_text(&names->model->names, places[i].file, NULL)),
			places[i].line);
	fputc(']', out);
	xt_close_memstream(out);
	name = frame_labelled_name(names, name, text);
	free(text);
	return name;
}

/* The functions of a generated file that call kernels. */
static bool is_graph(const char *function)
{
	return !strcmp(function, "Runner.call") || !strncmp(function, "partition_", 10);
}

static uint32_t unknown_name(const struct compiled_frames *frames, struct frame_names *names,
			     uint32_t id, uint32_t own)
{
	const struct model *model = frames->model;
	const struct python_frame *frame = &model->python_frames.rows[id];
	const char *file = names_text(&model->names, model_string(model, frame->file), NULL);
	const char *function = names_text(&model->names, model_string(model, frame->name), NULL);
	const char *nodes;
	char *label;

	if (!generated_code_is_file(file))
		return own;
	if (frames->first[id]) {
		nodes = names_text(&model->names,
				   model->compiled.rows[frames->first[id]].place.function, NULL);
		label = xt_asprintf("[%s]", nodes);
		own = frame_labelled_name(names, own, label);
		free(label);
	}
	if (!(frames->first[id] || is_graph(function)) ||
	    (frame->file < model->strings.count && frames->file_has_lines[frame->file]))
		return own;
	paths_mark(names->paths, own, MARK_COMPILED_UNKNOWN);
	return own;
}

/* own: the frame's own name. Returns the shown name. */
static uint32_t shown_name(const struct compiled_frames *frames, struct frame_names *names,
			   uint32_t id, uint32_t own)
{
	const struct compiled_place *rows = &frames->model->compiled.rows[frames->first[id]];
	uint32_t name;

	if (!frames->first[id] || !rows->trace)
		return unknown_name(frames, names, id, own);
	name = fused_name(names, rows, row_count(frames, id));
	paths_mark(names->paths, name, MARK_COMPILED_LINES);
	return name;
}

/* Returns the number of the user's lines that replace a frame. 0: it is shown itself. */
static uint32_t line_count(const struct compiled_frames *frames, uint32_t id)
{
	const struct compiled_place *rows = &frames->model->compiled.rows[frames->first[id]];

	return frames->first[id] && rows->trace ? trace_length(rows, row_count(frames, id)) : 0;
}

static uint32_t add_outer(const struct compiled_frames *frames, struct frame_names *names,
			  uint32_t node, uint32_t id)
{
	const struct compiled_place *rows = &frames->model->compiled.rows[frames->first[id]];

	for (uint32_t r = 0, count = line_count(frames, id); r + 1 < count; r++)
		node = paths_child(names->paths, node, place_name(names, &rows[r].place));
	return node;
}

/*
 * Adds a Python frame below a node, and above it the user's frames around its line. Its name is
 * then in names->python. Returns the new node. Any id is valid.
 */
static uint32_t compiled_frames_add(const struct compiled_frames *frames, struct frame_names *names,
				    uint32_t node, uint32_t id)
{
	uint32_t name;

	if (id >= frames->model->python_frames.count)
		id = 0;
	if (!names->python[id]) {
		name = shown_name(frames, names, id, frame_python_name(names, id));
		names->python[id] = name + 1;
	}
	node = add_outer(frames, names, node, id);
	return paths_child(names->paths, node, names->python[id] - 1);
}

/* The same frames, n = 0 for the outermost: see frames_python_line(). */
static bool compiled_frames_line(const struct compiled_frames *frames, struct frame_names *names,
				 uint32_t id, uint32_t n, struct python_line *line)
{
	const struct model *model = frames->model;
	const struct python_frame *frame;
	uint32_t count;

	id = id < model->python_frames.count ? id : 0;
	count = line_count(frames, id);
	if (n >= (count ? count : 1) || !names->python[id])
		return false;
	*line = (struct python_line){.name = names->python[id] - 1};
	if (count) {
		line->place = model->compiled.rows[frames->first[id] + n].place;
		line->name = place_name(names, &line->place);
		line->is_labelled = n + 1 == count && line->name != names->python[id] - 1;
		if (line->is_labelled)
			line->name = names->python[id] - 1;
		return true;
	}
	frame = &model->python_frames.rows[id];
	line->place = (struct place){model_string(model, frame->name),
				     model_string(model, frame->file), frame->line};
	line->first_line = frame->first_line;
	line->is_labelled = frames->first[id];
	return true;
}

void frame_merge_begin(struct frame_merge *merge, const struct model *model,
		       const struct stack *stack, uint32_t first, uint32_t end,
		       enum python_shown shown)
{
	bool has_python = stack->python_count && shown != PYTHON_OFF;

	*merge = (struct frame_merge){
		.stack = stack,
		.python = has_python ? model->python.list + stack->first_python : NULL,
		.python_left = has_python ? stack->python_count : 0,
		.first = first,
		.native_left = end,
		.skips_native = has_python && shown == PYTHON_ONLY,
	};
	merge->is_truncated = stack->flags & (merge->skips_native ? XT_STACK_PYTHON_TRUNCATED
								  : XT_STACK_TRUNCATED);
	if (has_python && stack->flags & XT_STACK_PYTHON_TRUNCATED)
		merge->is_truncated = true;
}

/*
 * Truncated Python frames are missing at the outer end. Truncated native frames are missing after
 * the last recorded native frame.
 */
static bool is_missing_here(const struct frame_merge *merge, bool next_is_beyond)
{
	return merge->is_truncated &&
	       (!next_is_beyond || merge->stack->flags & XT_STACK_PYTHON_TRUNCATED);
}

static bool next(struct frame_merge *merge, struct merged_frame *out)
{
	uint32_t place = merge->python_left ? merge->python[merge->python_left - 1].place : 0;

	if (is_missing_here(merge, merge->python_left && place >= merge->stack->frame_count)) {
		merge->is_truncated = false;
		*out = (struct merged_frame){MERGED_TRUNCATED, 0};
		return true;
	}
	if (merge->skips_native)
		merge->native_left = merge->first;
	if (merge->python_left &&
	    (place + 1 >= merge->native_left || merge->native_left <= merge->first)) {
		if (place + 1 == merge->native_left && merge->native_left > merge->first)
			merge->native_left--; /* skip the interpreter loop that runs it */
		*out = (struct merged_frame){MERGED_PYTHON,
					     merge->python[--merge->python_left].frame};
		return true;
	}
	if (merge->native_left <= merge->first)
		return false;
	*out = (struct merged_frame){MERGED_NATIVE, --merge->native_left};
	return true;
}

bool frame_merge_next(struct frame_merge *merge, struct merged_frame *out)
{
	bool is_there;

	do
		is_there = next(merge, out);
	while (is_there && merge->hidden && out->kind == MERGED_NATIVE &&
	       merge->hidden[merge->addresses[out->index]]);
	return is_there;
}

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
	merge->addresses = frames->addresses->by_frame + row->first_frame;
	merge->hidden = frames->of_interpreter;
}

/*
 * Adds a native frame below node: the function, then functions inlined into it. Skips glue between
 * the program and CUDA.
 */
static uint32_t add_native(struct frames_context *c, uint32_t node, uint32_t a)
{
	const struct address *address = &c->addresses->list[a];
	const struct place *places = c->addresses->places.list;
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
		frames->addresses->by_frame + frames->model->stacks.rows[stack].first_frame;
	struct merged_frame frame;
	struct frame_merge merge;

	frames_merge(frames, frames->model, stack, &merge);
	while (frame_merge_next(&merge, &frame))
		xt_append(list->items, list->count, list->capacity, item_of(&frame, addresses));
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
	for (size_t a = 0; a < model->apis.count; a++) {
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
		.nodes = xt_calloc(model->stacks.count, sizeof(uint32_t)),
		.api_names = xt_calloc(model->stacks.count, sizeof(uint32_t)),
		.shown = xt_calloc(model->stacks.count, sizeof(struct shown_frames)),
		.python = style->python,
		.api_shown = xt_calloc(model->apis.count, sizeof(uint32_t)),
		.of_interpreter = xt_calloc(addresses->count + 1, sizeof(uint8_t)),
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
	for (uint32_t id = 1; id < model->stacks.count; id++) {
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
	free_all(frames->nodes, frames->api_names, frames->api_shown, frames->shown,
		 frames->address_names, frames->of_interpreter, frames->place_names);
	*frames = (struct frames){0};
}

#define SCOPES_MAX 64 /* the log is untrusted: further scopes form one frame */

static struct xt_bytes without_start(struct xt_bytes text, size_t length)
{
	return (struct xt_bytes){text.data + length, text.length - length};
}

static bool is_equal_text(struct xt_bytes a, struct xt_bytes b)
{
	return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

bool xla_is_profiler(const char *function)
{
	return !strncmp(function, "tsl::profiler::", strlen("tsl::profiler::"));
}

/* Adds a child with a sanitised name of three parts. */
static uint32_t add_scope_frame(struct paths *paths, uint32_t base, const char *before,
				struct xt_bytes text, const char *after)
{
	size_t room = strlen(before) + text_clean_bound(text.length) + strlen(after);
	char *label = xt_malloc(room + 1), *end = label;
	uint32_t name;

	end = text_copy(end, before, strlen(before));
	if (text.length)
		end += text_clean(end, text.data, text.length, ';');
	end = text_copy(end, after, strlen(after));
	name = names_intern(&paths->names, label, (size_t)(end - label));
	free(label);
	return paths_child(paths, base, name);
}

/* The module jit_step is the function step under jax.jit. */
static uint32_t add_module(struct paths *paths, uint32_t base, struct xt_bytes name, bool is_root)
{
	struct xt_bytes function = name;

	if (name.length > strlen("jit_") && !memcmp(name.data, "jit_", strlen("jit_")))
		function = without_start(name, strlen("jit_"));
	if (is_root)
		return add_scope_frame(paths, base,
				       function.length < name.length ? "[jit " : "[xla ", function,
				       "]");
	if (function.length < name.length)
		return add_scope_frame(paths, base, "jit(", function, ")");
	return add_scope_frame(paths, base, "[xla ", name, "]");
}

/* Leaves out scopes that a range around the operation has shown. */
static void skip_shown_scopes(const struct model *model, uint32_t range, struct xt_bytes *scopes)
{
	struct xt_bytes outer_scope, scope, rest = *scopes;

	while ((range = model->ranges.nodes.list[range].parent) != RANGE_NONE) {
		struct xla_range outer = xla_range_of(model, range);

		if (outer.kind == XLA_PROGRAM || outer.kind == XLA_TRIAL) {
			if (xla_next_scope(&rest, &scope) && xla_is_module_of(outer.name, scope))
				*scopes = rest;
			return;
		}
		if (outer.kind != XLA_OPERATION || !outer.name.length)
			continue;
		while (xla_next_scope(&rest, &scope) && xla_next_scope(&outer.name, &outer_scope) &&
		       is_equal_text(scope, outer_scope))
			*scopes = rest;
		return;
	}
}

/* Whether scopes end with an operation, such as dot_general, and not with jit(step) or jvp(). */
static bool names_operation(struct xt_bytes scopes)
{
	return scopes.length && scopes.data[scopes.length - 1] != ')';
}

/* The words before the name of a range that is one frame. */
static const char *const xla_labels[XLA_KINDS] = {
	[XLA_COMPILE] = "[compile ",
	[XLA_PASS] = "[pass ",
	[XLA_TUNING] = "[autotune ",
};

uint32_t xla_add_frames(struct paths *paths, const struct model *model, uint32_t base,
			uint32_t range, bool is_root)
{
	struct xla_range xla = xla_range_of(model, range);
	struct xt_bytes scope;

	if (xla_labels[xla.kind])
		return add_scope_frame(paths, base, xla_labels[xla.kind], xla.name, "]");
	if (xla.kind != XLA_OPERATION)
		return add_module(paths, base, xla.name, is_root);
	if (names_operation(xla.name))
		xla.operation.length = 0;
	skip_shown_scopes(model, range, &xla.name);
	for (int s = 0; s < SCOPES_MAX && xla_next_scope(&xla.name, &scope); s++)
		base = add_scope_frame(paths, base, "", scope, "");
	if (xla.name.length)
		base = add_scope_frame(paths, base, "", xla.name, "");
	if (!xla.operation.length)
		return base;
	return add_scope_frame(paths, base, "[hlo ", xla.operation, "]");
}
