/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From stacks to call paths.
 *
 * A stack, innermost first, is: the tracer, CUPTI and the driver; perhaps the CUDA runtime, a
 * library or part of the program; perhaps glue that nvcc made; the program; what started the
 * thread. Only the program is shown, and of the runtime the function that the program called.
 */
#include "merge/frames.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

#include "merge/grow.h"
#include "merge/symbols.h"
#include "merge/text.h"

#define RUNTIME_FRAMES_MAX 16 /* the runtime is not deeper than this */

enum role {
	ROLE_PROGRAM,
	ROLE_DRIVER,	  /* the driver, CUPTI, the tracer */
	ROLE_RUNTIME,	  /* inside the CUDA runtime */
	ROLE_RUNTIME_API, /* a function that the runtime offers */
	ROLE_GLUE,	  /* between the program's code and the runtime, made by nvcc */
	ROLE_NAMELESS,	  /* in a module, in no known function */
	ROLE_PLT,
	ROLE_THREAD_START, /* from the start of the thread to the program's first function */
};

enum match { MATCH_WHOLE, MATCH_PREFIX };

/* Roles by the mangled name. */
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
 * "cudaX…", or "__cudaX…" as the headers call it: in C, so mangled names are none. Outside the
 * runtime's own library a program may have such names too, so only those are taken for the
 * (statically linked) runtime's that begin as its functions that reach the GPU do.
 */
static bool is_runtime_api(const char *name, bool in_library)
{
	static const char *const subjects[] = {"Launch", "Graph", "Mem",    "Malloc", "Free",
					       "Stream", "Event", "Device", "Host"};

	if (!strncmp(name, "__", 2))
		name += 2;
	if (strncmp(name, "cuda", 4) || !isupper((unsigned char)name[4]))
		return false;
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		in_library |= !strncmp(name + 4, subjects[i], strlen(subjects[i]));
	return in_library;
}

static bool is_libc(const char *file_name)
{
	return module_is_library(file_name, "libc.so") ||
	       module_is_library(file_name, "libpthread.so");
}

/*
 * A Python interpreter's program or library: "python3.12", "libpython3.12.so.1.0". A program of another
 * name that has an interpreter in it has functions of its own, which count.
 */
static bool is_interpreter(const struct model *model, uint32_t module)
{
	const char *file_name = module ? module_file_name(model, module) : "";

	if (!strncmp(file_name, "lib", 3))
		file_name += 3;
	if (strncmp(file_name, "python", 6) != 0)
		return false;
	return !file_name[6] || isdigit((unsigned char)file_name[6]);
}

/* What the name alone says: ROLE_PROGRAM if nothing. */
static enum role role_of_name(const char *name)
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
	size_t length = strlen(name), plt = strlen(SYMBOLS_PLT);
	bool in_library = module_is_library(file_name, "libcudart.so");
	enum role role;

	if (address->module && module_is_driver(model, address->module))
		return ROLE_DRIVER;
	if (length >= plt && !strcmp(name + length - plt, SYMBOLS_PLT))
		return ROLE_PLT;
	role = role_of_name(name);
	if (role != ROLE_PROGRAM)
		return role;
	if (is_runtime_api(name, in_library))
		return ROLE_RUNTIME_API;
	if (in_library)
		return ROLE_RUNTIME;
	if (address->name != NAME_EMPTY || !address->module)
		return ROLE_PROGRAM;
	/* The C library's thread start has no names where it is stripped. */
	return is_libc(file_name) ? ROLE_THREAD_START : ROLE_NAMELESS;
}

/* What does not change from stack to stack. */
struct context {
	const struct model *model;
	const struct addresses *addresses;
	struct demangle_cache *cache;
	struct paths *paths;
	const struct frame_style *style;
	struct file_names *files;
	uint8_t *roles;		/* by address */
	uint32_t *shown;	/* of frames->address_names */
	uint32_t *shown_places; /* of frames->place_names */
	uint32_t *shown_python; /* of frames->python_names */
};

/* A function of the API without what tells its versions apart: _ptsz, _ptds, _v2, _v13000. */
static uint32_t intern_api(struct paths *paths, const char *name)
{
	size_t length = strlen(name), shorter = length;
	char *clean;
	uint32_t shown;

	if (!strncmp(name, "__cuda", 6)) {
		name += 2;
		length -= 2;
	}
	do {
		length = shorter < length ? shorter : length;
		if (length > 5 && (!strncmp(name + length - 5, "_ptsz", 5) ||
				   !strncmp(name + length - 5, "_ptds", 5)))
			shorter = length - 5;
		for (size_t digit = length; digit-- > 2 && isdigit((unsigned char)name[digit]);)
			if (name[digit - 1] == 'v' && name[digit - 2] == '_')
				shorter = digit - 2;
	} while (shorter < length);
	clean = malloc(text_clean_bound(length) + 1);
	if (!clean)
		return NAME_FAILED;
	shown = names_intern(&paths->names, clean, text_clean(clean, name, length, ';'));
	free(clean);
	return shown;
}

static uint32_t intern_nameless(struct context *c, const struct address *address)
{
	const struct module *module = &c->model->modules.rows[address->module];
	const char *file_name = module_file_name(c->model, address->module);
	uint32_t shown = NAME_FAILED;
	char *text, *clean = NULL;
	int length;

	if (!address->module)
		return names_intern(&c->paths->names, FRAME_UNKNOWN, strlen(FRAME_UNKNOWN));
	length = asprintf(&text, "%s+0x%llx", file_name,
			  (unsigned long long)(address_value(address) - module->bias));
	if (length < 0)
		return NAME_FAILED;
	clean = malloc(text_clean_bound((size_t)length));
	if (clean)
		shown = names_intern(&c->paths->names, clean,
				     text_clean(clean, text, (size_t)length, ';'));
	free(clean);
	free(text);
	return shown;
}

/* "name (file.c:12)", or without a line "name (file.c)" */
static uint32_t intern_line(struct context *c, const char *name, const char *path, uint32_t line)
{
	const char *file =
		c->cache->style == DEMANGLE_FULL ? path : file_names_shown(c->files, path);
	uint32_t shown = NAME_FAILED;
	char *text, *clean, number[16] = "";
	int length;

	if (line)
		snprintf(number, sizeof(number), ":%u", line);
	length = asprintf(&text, "%s (%s%s)", name, file, number);
	if (length < 0)
		return NAME_FAILED;
	clean = malloc(text_clean_bound((size_t)length));
	if (clean)
		shown = names_intern(&c->paths->names, clean,
				     text_clean(clean, text, (size_t)length, ';'));
	free(clean);
	free(text);
	return shown;
}

static uint32_t add_line(struct context *c, uint32_t name, const struct place *place)
{
	if (name == NAME_FAILED || place->file == NAME_EMPTY || !place->line)
		return name;
	return intern_line(c, names_text(&c->paths->names, name, NULL),
			   names_text(&c->model->names, place->file, NULL), place->line);
}

/* The function that the address lies in. */
static uint32_t shown_function(struct context *c, const struct address *address)
{
	return address->name == NAME_EMPTY ? intern_nameless(c, address)
					   : demangle(c->cache, address->name, c->cache->style);
}

static uint32_t shown_name(struct context *c, uint32_t a)
{
	const struct address *address = &c->addresses->list[a];
	uint32_t name;

	if (c->shown[a])
		return c->shown[a] - 1;
	name = shown_function(c, address);
	if (c->style->lines && address->place_count)
		name = add_line(
			c, name,
			&c->addresses->places[address->first_place + address->place_count - 1]);
	if (name != NAME_FAILED)
		c->shown[a] = name + 1;
	return name;
}

/* "train_step (train.py:12)" */
static uint32_t shown_python(struct context *c, uint32_t id)
{
	const struct model *model = c->model;
	const struct python_frame *frame;
	const char *name, *path;
	uint32_t shown;

	if (id >= model->python_frames.count)
		id = 0;
	if (c->shown_python[id])
		return c->shown_python[id] - 1;
	frame = &model->python_frames.rows[id];
	name = names_text(&model->names, model_string(model, frame->name), NULL);
	path = names_text(&model->names, model_string(model, frame->file), NULL);
	if (name[0])
		shown = intern_line(c, name, path, frame->line);
	else
		shown = names_intern(&c->paths->names, FRAME_UNKNOWN, strlen(FRAME_UNKNOWN));
	if (shown != NAME_FAILED)
		c->shown_python[id] = shown + 1;
	return shown;
}

/* A function that was inlined. */
static uint32_t shown_place(struct context *c, size_t p)
{
	const struct place *place = &c->addresses->places[p];
	uint32_t name;

	if (c->shown_places[p])
		return c->shown_places[p] - 1;
	name = place->function == NAME_EMPTY
		       ? names_intern(&c->paths->names, FRAME_INLINED, strlen(FRAME_INLINED))
		       : demangle(c->cache, place->function, c->cache->style);
	if (c->style->lines)
		name = add_line(c, name, place);
	if (name != NAME_FAILED)
		c->shown_places[p] = name + 1;
	return name;
}

/*
 * Where the program begins in frames[0 .. count), and in *api_out the frame of the runtime
 * function it called (count if none). The statically linked runtime may have lost the names of
 * all but what it offers: nameless frames count as runtime if such a function of the same module
 * follows.
 */
static uint32_t skip_cuda(const struct context *c, const uint32_t *frames, uint32_t count,
			  uint32_t *api_out)
{
	uint32_t first = 0, nameless_module = 0;

	*api_out = count;
	while (first < count &&
	       (c->roles[frames[first]] == ROLE_DRIVER || c->roles[frames[first]] == ROLE_PLT))
		first++;
	for (uint32_t f = first; f < count && f < first + RUNTIME_FRAMES_MAX; f++) {
		enum role role = c->roles[frames[f]];
		uint32_t module = c->addresses->list[frames[f]].module;

		if (role == ROLE_NAMELESS && *api_out == count &&
		    (!nameless_module || nameless_module == module)) {
			nameless_module = module;
			continue;
		}
		if (nameless_module && *api_out == count &&
		    (role != ROLE_RUNTIME_API || module != nameless_module))
			break;
		if (role == ROLE_RUNTIME_API)
			*api_out = f;
		else if (role != ROLE_RUNTIME && role != ROLE_PLT)
			break;
		first = f + 1;
	}
	while (first < count && c->roles[frames[first]] == ROLE_GLUE)
		first++;
	return first;
}

void frames_mix(const struct frames *frames, const struct model *model, uint32_t stack,
		struct mix *mix)
{
	const struct stack *row = &model->stacks.rows[stack];

	mix_begin(mix, model, row, frames->shown[stack].first, frames->shown[stack].end,
		  frames->python);
	if (frames->python != PYTHON_MIXED || !row->python_count)
		return;
	mix->addresses = frames->by_frame + row->first_frame;
	mix->hidden = frames->of_interpreter;
}

/*
 * Puts a native frame below node: the function, then what was inlined into it, but for glue between
 * the program and CUDA.
 */
static uint32_t add_native(struct context *c, uint32_t node, uint32_t a)
{
	const struct address *address = &c->addresses->list[a];
	const struct place *places = c->addresses->places;
	size_t first = address->first_place, last = first + address->place_count;

	if (c->roles[a] == ROLE_PLT)
		return node;
	node = paths_child(c->paths, node, shown_name(c, a));
	while (first + 1 < last && role_of_name(names_text(&c->model->names, places[first].function,
							   NULL)) == ROLE_GLUE)
		first++;
	for (size_t p = last; c->style->inlines && p-- > first + 1;)
		node = paths_child(c->paths, node, shown_place(c, p - 1));
	return node;
}

static uint32_t add_frame(struct context *c, uint32_t node, const uint32_t *addresses,
			  const struct mixed_frame *frame)
{
	switch (frame->kind) {
	case MIXED_PYTHON:
		return paths_child(c->paths, node, shown_python(c, frame->index));
	case MIXED_TRUNCATED:
		return paths_child(
			c->paths, node,
			names_intern(&c->paths->names, FRAME_TRUNCATED, strlen(FRAME_TRUNCATED)));
	case MIXED_NATIVE:
		break;
	}
	return add_native(c, node, addresses[frame->index]);
}

/* The end of the frames that are shown: without those that start the thread, and where a stack begins
 * with Python, without those of the interpreter that start it. */
static uint32_t skip_start(const struct context *c, const struct stack *stack,
			   const uint32_t *frames, uint32_t first)
{
	const struct python_place *python = c->model->python + stack->first_python;
	uint32_t end = stack->frame_count, place, module;

	/* _start itself has no name in a stripped program. */
	if (end > first + 1 && c->roles[frames[end - 1]] == ROLE_NAMELESS &&
	    c->roles[frames[end - 2]] == ROLE_THREAD_START)
		end--;
	while (end > first && c->roles[frames[end - 1]] == ROLE_THREAD_START)
		end--;
	/* What the C library calls first in a thread of std::thread. */
	if (end > first && end < stack->frame_count &&
	    module_is_library(
		    module_file_name(c->model, c->addresses->list[frames[end - 1]].module),
		    "libstdc++.so"))
		end--;
	place = stack->python_count && c->style->python != PYTHON_OFF
			? python[stack->python_count - 1].place
			: end;
	if (place < first || place >= end)
		return end;
	module = c->addresses->list[frames[place]].module;
	for (uint32_t f = place + 1; f < end; f++) {
		uint32_t other = c->addresses->list[frames[f]].module;

		if (other != module && c->roles[frames[f]] != ROLE_THREAD_START &&
		    !is_interpreter(c->model, other))
			return end;
	}
	return place + 1;
}

/* Puts one stack into the tree, outermost frame first. */
static int build_stack(struct frames *out, struct context *c, uint32_t id)
{
	const struct stack *stack = &c->model->stacks.rows[id];
	const uint32_t *frames = c->addresses->by_frame + stack->first_frame;
	uint32_t count = stack->frame_count, api;
	uint32_t first = skip_cuda(c, frames, count, &api);
	uint32_t node = out->root;
	struct mixed_frame frame;
	struct mix mix;

	if (api < count) {
		uint32_t name = c->addresses->list[frames[api]].name;

		out->api_names[id] = intern_api(c->paths, names_text(&c->model->names, name, NULL));
		if (out->api_names[id] == NAME_FAILED)
			return -ENOMEM;
	}
	out->shown[id] = (struct shown_frames){first, skip_start(c, stack, frames, first)};
	frames_mix(out, c->model, id, &mix);
	while (mix_next(&mix, &frame))
		node = add_frame(c, node, frames, &frame);
	out->nodes[id] = node;
	return node == PATH_FAILED ? -ENOMEM : 0;
}

static int build_apis(struct frames *frames, const struct model *model, struct paths *paths)
{
	for (size_t a = 0; a < frames->api_count; a++) {
		const char *name = names_text(&model->names, model->apis.rows[a].name, NULL);

		frames->api_shown[a] = intern_api(paths, name[0] ? name : "[unknown API]");
		if (frames->api_shown[a] == NAME_FAILED)
			return -ENOMEM;
	}
	return 0;
}

/* The files that will be shown. */
static int settle_files(struct context *c)
{
	const struct model *model = c->model;
	const struct addresses *addresses = c->addresses;
	uint32_t last = NAME_EMPTY;
	int error = 0;

	for (size_t id = 0; id < model->python_frames.count && !error; id++) {
		uint32_t file = model_string(model, model->python_frames.rows[id].file);

		if (file != NAME_EMPTY && file != last)
			error = file_names_add(c->files, names_text(&model->names, file, NULL));
		last = file;
	}
	for (size_t p = 0; c->style->lines && p < addresses->place_count && !error; p++) {
		uint32_t file = addresses->places[p].file;

		if (file != NAME_EMPTY && file != last)
			error = file_names_add(c->files, names_text(&model->names, file, NULL));
		last = file;
	}
	return error ? error : file_names_settle(c->files);
}

int frames_build(struct frames *frames, const struct model *model,
		 const struct addresses *addresses, const struct frame_style *style,
		 struct demangle_cache *cache, struct file_names *files, struct paths *paths,
		 uint32_t root)
{
	struct context c = {.model = model,
			    .addresses = addresses,
			    .cache = cache,
			    .paths = paths,
			    .files = files,
			    .style = style};
	int error = -ENOMEM;

	*frames = (struct frames){
		.root = root,
		.stack_count = model->stacks.count,
		.api_count = model->apis.count,
		.nodes = calloc(model->stacks.count, sizeof(uint32_t)),
		.api_names = calloc(model->stacks.count, sizeof(uint32_t)),
		.shown = calloc(model->stacks.count, sizeof(struct shown_frames)),
		.address_names = calloc(addresses->count + 1, sizeof(uint32_t)),
		.python_names = calloc(model->python_frames.count + 1, sizeof(uint32_t)),
		.python = style->python,
		.place_names = calloc(addresses->place_count + 1, sizeof(uint32_t)),
		.api_shown = calloc(model->apis.count, sizeof(uint32_t)),
		.of_interpreter = calloc(addresses->count + 1, sizeof(uint8_t)),
		.by_frame = addresses->by_frame,
	};
	c.roles = calloc(addresses->count + 1, sizeof(*c.roles));
	c.shown = frames->address_names;
	c.shown_places = frames->place_names;
	c.shown_python = frames->python_names;
	if (!frames->nodes || !frames->api_names || !frames->api_shown || !frames->shown ||
	    !frames->of_interpreter || !c.shown || !c.shown_places || !c.shown_python || !c.roles)
		goto out;
	for (uint32_t a = 0; a < addresses->count; a++) {
		c.roles[a] = (uint8_t)role_of(model, &addresses->list[a]);
		frames->of_interpreter[a] = is_interpreter(model, addresses->list[a].module);
	}
	error = build_apis(frames, model, paths);
	if (!error)
		error = settle_files(&c);
	frames->nodes[0] = PATH_FAILED;
	for (uint32_t id = 1; id < frames->stack_count && !error; id++) {
		frames->nodes[id] = PATH_FAILED;
		if (model_has_stack(model, id))
			error = build_stack(frames, &c, id);
	}
out:
	free(c.roles);
	return error;
}

void frames_free(struct frames *frames)
{
	free(frames->nodes);
	free(frames->api_names);
	free(frames->api_shown);
	free(frames->shown);
	free(frames->address_names);
	free(frames->python_names);
	free(frames->of_interpreter);
	free(frames->place_names);
	*frames = (struct frames){0};
}
