/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/frame_names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/text.h"

uint32_t frame_api_name(struct names *names, const char *name)
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
	clean = xt_malloc(text_clean_bound(length) + 1);
	shown = names_intern(names, clean, text_clean(clean, name, length, ';'));
	free(clean);
	return shown;
}

/* Interns and frees the text. */
static uint32_t take_text(struct frame_names *c, char *text)
{
	size_t length = strlen(text);
	char *clean = xt_malloc(text_clean_bound(length));
	uint32_t shown = names_intern(c->names, clean, text_clean(clean, text, length, ';'));

	free(clean);
	free(text);
	return shown;
}

static uint32_t intern_unnamed(struct frame_names *c, const struct address *address)
{
	const struct module *module = &c->model->modules.rows[address->module];
	const char *file_name = module_file_name(c->model, address->module);

	if (!address->module)
		return names_intern(c->names, FRAME_UNKNOWN, strlen(FRAME_UNKNOWN));
	return take_text(c,
			 xt_asprintf("%s+0x%llx", file_name,
				     (unsigned long long)(address_value(address) - module->bias)));
}

const char *frame_shown_file(const struct frame_names *c, const char *path)
{
	path = redact_path(c->redaction, path);
	return c->cache->style == DEMANGLE_FULL ? path : file_names_shown(c->files, path);
}

/* "name (file.c:12)", or without a line "name (file.c)" */
static uint32_t intern_line(struct frame_names *c, const char *name, const char *path,
			    uint32_t line)
{
	const char *file = frame_shown_file(c, path);
	char number[16] = "";

	if (line)
		snprintf(number, sizeof(number), ":%u", line);
	return take_text(c, xt_asprintf("%s (%s%s)", name, file, number));
}

static uint32_t add_line(struct frame_names *c, uint32_t name, const struct place *place)
{
	if (place->file == NAME_EMPTY || !place->line)
		return name;
	return intern_line(c, names_text(c->names, name, NULL),
			   names_text(&c->model->names, place->file, NULL), place->line);
}

/* "name [file.c]", "name [plugin.so]", "name [program+0x1230]" */
static uint32_t add_qualifier(struct frame_names *c, uint32_t name, uint32_t a)
{
	const struct name_qualifier *qualifier = &c->qualifiers[a];
	char start[24] = "";

	if (qualifier->path == NAME_EMPTY)
		return name;
	if (c->lines && c->addresses->list[a].place_count) /* the caller appends "(file.c:12)" */
		return name;
	if (qualifier->has_address)
		snprintf(start, sizeof(start), "+0x%llx",
			 (unsigned long long)c->addresses->list[a].start);
	return take_text(c, xt_asprintf("%s [%s%s]", names_text(c->names, name, NULL),
					frame_shown_file(c, names_text(&c->model->names,
								       qualifier->path, NULL)),
					start));
}

static bool is_users(const struct frame_names *c, const char *path)
{
	if (c->user_files)
		return regexec(c->user_files, path, 0, NULL, 0) == 0;
	return !file_is_library(path);
}

/* Length of PREFIX/ in PREFIX/bin/python3 or PREFIX/lib/libpython3.so; 0: another module. */
static size_t interpreter_prefix(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t length = name ? (size_t)(name - path) : 0;

	if (length < 4 || (strncmp(name, "/python", 7) && strncmp(name, "/libpython", 10)) ||
	    (strncmp(name - 4, "/bin", 4) && strncmp(name - 4, "/lib", 4)))
		return 0;
	return length - 3;
}

/* Whether the module was installed with Python, as in an environment of conda. */
static bool is_of_interpreter(const struct frame_names *c, const char *path)
{
	for (uint32_t m = 1; m < c->model->modules.count; m++) {
		const char *other =
			names_text(&c->model->names, c->model->modules.rows[m].path, NULL);
		size_t prefix = interpreter_prefix(other);

		if (prefix && !strncmp(path, other, prefix) &&
		    (!strncmp(path + prefix, "lib", 3) || !strncmp(path + prefix, "bin/", 4)))
			return true;
	}
	return false;
}

/*
 * Marks a function without a known line as user code if its module is not an installed library.
 * Returns the name.
 */
static uint32_t mark_user_module(struct frame_names *c, uint32_t name, uint32_t module)
{
	const char *path = names_text(&c->model->names, c->model->modules.rows[module].path, NULL);

	if (!module || path[0] != '/' || module_is_driver(c->model, module) ||
	    module_is_installed(path) || !is_users(c, path) || is_of_interpreter(c, path))
		return name;
	paths_mark(c->paths, name, MARK_USER_MODULE);
	return name;
}

/* Marks a frame as user code if its line is in the user's file. Returns the name. */
static uint32_t mark_user_path(struct frame_names *c, uint32_t name, const char *path,
			       uint32_t line)
{
	if (!line || !path[0] || !is_users(c, path))
		return name;
	path = redact_path(c->redaction, path);
	paths_mark_line(c->paths, name, path, line);
	return name;
}

/* module: of native code, or 0. --my-code selects files in installed packages, too. */
static uint32_t mark_user_code(struct frame_names *c, uint32_t name, uint32_t file, uint32_t line,
			       uint32_t module)
{
	if (!c->user_files && model_is_library(c->model, module))
		return name;
	return mark_user_path(c, name, names_text(&c->model->names, file, NULL), line);
}

uint32_t frame_line_name(struct frame_names *c, const char *function, const char *path,
			 uint32_t line)
{
	return mark_user_path(c, intern_line(c, function, path, line), path, line);
}

/* Keeps the marks of the name. */
uint32_t frame_labelled_name(struct frame_names *c, uint32_t name, const char *label)
{
	bool is_users = paths_is_user_code(c->paths, name);
	uint32_t labelled =
		take_text(c, xt_asprintf("%s %s", names_text(c->names, name, NULL), label));
	struct frame_line place;
	const char *file;

	if (!is_users)
		return labelled;
	place = *paths_line(c->paths, name);
	file = names_text(c->names, place.file, NULL);
	paths_mark_line(c->paths, labelled, file, place.line);
	return labelled;
}

/* Names the function that contains the address. */
static uint32_t name_function(struct frame_names *c, uint32_t a)
{
	const struct address *address = &c->addresses->list[a];

	if (address->name == NAME_EMPTY)
		return intern_unnamed(c, address);
	return add_qualifier(c, demangle(c->cache, address->name, c->cache->style), a);
}

uint32_t frame_native_name(struct frame_names *c, uint32_t a)
{
	const struct address *address = &c->addresses->list[a];
	const struct place *place = NULL;
	uint32_t name;

	if (c->native[a])
		return c->native[a] - 1;
	if (address->place_count)
		place = &c->addresses->places[address->first_place + address->place_count - 1];
	name = name_function(c, a);
	if (c->lines && place)
		name = add_line(c, name, place);
	if (place)
		name = mark_user_code(c, name, place->file, place->line, address->module);
	else
		name = mark_user_module(c, name, address->module);
	c->native[a] = name + 1;
	return name;
}

uint32_t frame_python_name(struct frame_names *c, uint32_t id)
{
	const struct model *model = c->model;
	const struct python_frame *frame;
	uint32_t shown, file;
	const char *name;

	if (id >= model->python_frames.count)
		id = 0;
	if (c->python[id])
		return c->python[id] - 1;
	frame = &model->python_frames.rows[id];
	name = names_text(&model->names, model_string(model, frame->name), NULL);
	file = model_string(model, frame->file);
	if (name[0] && file == NAME_EMPTY && !frame->first_line) /* not a function */
		shown = take_text(c, xt_strdup(name));
	else if (name[0])
		shown = mark_user_code(
			c, intern_line(c, name, names_text(&model->names, file, NULL), frame->line),
			file, frame->line, 0);
	else
		shown = names_intern(c->names, FRAME_UNKNOWN, strlen(FRAME_UNKNOWN));
	c->python[id] = shown + 1;
	return shown;
}

uint32_t frame_inlined_name(struct frame_names *c, uint32_t a, size_t p)
{
	const struct place *place = &c->addresses->places[p];
	uint32_t name;

	if (c->inlined[p])
		return c->inlined[p] - 1;
	name = place->function == NAME_EMPTY
		       ? names_intern(c->names, FRAME_INLINED, strlen(FRAME_INLINED))
		       : demangle(c->cache, place->function, c->cache->style);
	if (c->lines)
		name = add_line(c, name, place);
	name = mark_user_code(c, name, place->file, place->line, c->addresses->list[a].module);
	c->inlined[p] = name + 1;
	return name;
}

static void add_file(struct frame_names *c, uint32_t path)
{
	file_names_add(c->files,
		       redact_path(c->redaction, names_text(&c->model->names, path, NULL)));
}

/* Assigns names to all files that will be shown. */
static void assign_files(struct frame_names *c)
{
	const struct model *model = c->model;
	const struct addresses *addresses = c->addresses;
	uint32_t last = NAME_EMPTY;

	for (size_t id = 0; id < model->python_frames.count; id++) {
		uint32_t file = model_string(model, model->python_frames.rows[id].file);

		if (file != NAME_EMPTY && file != last)
			add_file(c, file);
		last = file;
	}
	for (size_t r = 1; r < model->compiled.count; r++) {
		uint32_t file = model->compiled.rows[r].place.file;

		if (file != NAME_EMPTY && file != last)
			add_file(c, file);
		last = file;
	}
	for (size_t p = 0; c->lines && p < addresses->place_count; p++) {
		uint32_t file = addresses->places[p].file;

		if (file != NAME_EMPTY && file != last)
			add_file(c, file);
		last = file;
	}
	for (uint32_t a = 0; a < addresses->count; a++)
		if (c->qualifiers[a].path != NAME_EMPTY)
			add_file(c, c->qualifiers[a].path);
	file_names_assign(c->files);
}

void frame_names_begin(struct frame_names *names)
{
	names->native = xt_calloc(names->addresses->count + 1, sizeof(*names->native));
	names->inlined = xt_calloc(names->addresses->place_count + 1, sizeof(*names->inlined));
	names->python = xt_calloc(names->model->python_frames.count + 1, sizeof(*names->python));
	names->qualifiers = disambiguate_functions(names->model, names->addresses);
	assign_files(names);
}

void frame_names_end(struct frame_names *names)
{
	free(names->qualifiers);
	names->qualifiers = NULL;
}
