/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings, functions and locations that the samples refer to. Each is written on first use.
 */

#include "merge/export/pprof/pprof_locations.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/export/pprof/pprof_messages.h"

struct function_key {
	int64_t name;
	int64_t system_name;
	int64_t filename;
	int64_t start_line;
};

struct location_key {
	uint64_t mapping;
	uint64_t address;
	uint64_t function;
	int64_t line;
};

/* Returns the id of a key. Sets *is_new if it was added. */
static uint64_t id_of(struct names *keys, const void *key, size_t key_bytes, bool *is_new)
{
	uint32_t count = keys->count;
	uint32_t id = names_intern(keys, key, key_bytes);

	*is_new = keys->count > count;
	return id;
}

static uint64_t put_function(struct pprof *pprof, const struct function_key *key)
{
	Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT;
	Perftools__Profiles__Function *list = &function;
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	bool is_new;

	function.id = id_of(&pprof->functions, key, sizeof(*key), &is_new);
	if (!is_new)
		return function.id;
	function.name = key->name;
	function.system_name = key->system_name;
	function.filename = key->filename;
	function.start_line = key->start_line;
	piece.function = &list;
	piece.n_function = 1;
	pprof_put(pprof, &piece);
	return function.id;
}

/*
 * Writes a location with its inlined functions, innermost first. key->function belongs to the last
 * line.
 */
static uint64_t put_location(struct pprof *pprof, const struct location_key *key,
			     Perftools__Profiles__Line *lines, size_t line_count)
{
	Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT;
	Perftools__Profiles__Location *list = &location;
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Line **line_list;
	bool is_new;

	location.id = id_of(&pprof->locations, key, sizeof(*key), &is_new);
	if (!is_new)
		return location.id;
	line_list = xt_calloc(line_count, sizeof(*line_list));
	for (size_t l = 0; l < line_count; l++)
		line_list[l] = &lines[l];
	location.mapping_id = key->mapping;
	location.address = key->address;
	location.line = line_list;
	location.n_line = line_count;
	piece.location = &list;
	piece.n_location = 1;
	pprof_put(pprof, &piece);
	free(line_list);
	return location.id;
}

uint64_t pprof_name_location(struct pprof *pprof, const char *text, size_t length)
{
	struct function_key function = {.name = pprof_string(pprof, text, length)};
	struct location_key location = {.function = put_function(pprof, &function)};
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;

	line.function_id = location.function;
	return put_location(pprof, &location, &line, 1);
}

/* Formats the build id in hexadecimal, as pprof and symbol servers expect. */
static int64_t build_id_string(struct pprof *pprof, const struct model *model, uint32_t name)
{
	size_t length;
	const uint8_t *bytes = (const uint8_t *)names_text(&model->names, name, &length);
	char *text = xt_malloc(length * 2 + 1);
	int64_t string;

	for (size_t i = 0; i < length; i++)
		snprintf(text + i * 2, 3, "%02x", bytes[i]);
	string = pprof_string(pprof, text, length * 2);
	free(text);
	return string;
}

/* Returns the mapping of a module, written on first use. */
static uint64_t put_mapping(struct pprof *pprof, const struct model *model, uint32_t m)
{
	const struct module *module = &model->modules.rows[m];
	Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT, *list = &mapping;
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	size_t length;
	const char *path = names_text(&model->names, module->path, &length);

	if (pprof->mappings[m])
		return pprof->mappings[m];
	mapping.id = ++pprof->mapping_count;
	mapping.memory_start = module->start;
	mapping.memory_limit = module->end;
	mapping.filename = pprof_string(pprof, path, length);
	mapping.build_id = build_id_string(pprof, model, module->build_id);
	mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers =
		mapping.has_inline_frames = 1;
	piece.mapping = &list;
	piece.n_mapping = 1;
	pprof_put(pprof, &piece);
	pprof->mappings[m] = mapping.id;
	return mapping.id;
}

void pprof_begin_process(struct pprof *pprof, const struct process *process)
{
	const struct model *model = process->model;
	const char *program = model_meta(model, "process.exe");

	xt_grow(&pprof->mappings, &pprof->mapping_capacity, model->modules.count,
		sizeof(*pprof->mappings));
	xt_grow(&pprof->address_locations, &pprof->address_capacity,
		(size_t)process->addresses->count + 1, sizeof(*pprof->address_locations));
	memset(pprof->mappings, 0, pprof->mapping_capacity * sizeof(*pprof->mappings));
	memset(pprof->address_locations, 0,
	       pprof->address_capacity * sizeof(*pprof->address_locations));
	for (uint32_t m = 1; m < model->modules.count; m++)
		if (!strcmp(names_text(&model->names, model->modules.rows[m].path, NULL),
			    program)) {
			put_mapping(pprof, model, m);
			break;
		}
}

uint64_t pprof_python_location(struct pprof *pprof, const struct process *process,
			       const struct python_line *python)
{
	const struct names *names = &process->model->names;
	struct function_key function = {.start_line = python->first_line};
	struct location_key location = {.line = python->place.line};
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
	size_t length;
	const char *text = names_text(names, python->place.function, &length);

	if (!length || python->is_labelled)
		text = names_text(&process->paths->names, python->name, &length);
	function.name = pprof_string(pprof, text, length);
	function.system_name = function.name;
	text = names_text(names, python->place.file, &length);
	function.filename = pprof_string(pprof, text, length);
	location.function = put_function(pprof, &function);
	line.function_id = location.function;
	line.line = python->place.line;
	return put_location(pprof, &location, &line, 1);
}

/* Fills in one line of a location. shown is a name in the process's paths. */
static void make_line(struct pprof *pprof, const struct process *process, uint32_t shown,
		      uint32_t system_name, const struct place *place,
		      Perftools__Profiles__Line *line)
{
	struct function_key function = {0};
	size_t length;
	const char *text = names_text(&process->paths->names, shown, &length);

	function.name = pprof_string(pprof, text, length);
	text = names_text(&process->model->names, system_name, &length);
	function.system_name = pprof_string(pprof, text, length);
	if (place) {
		text = names_text(&process->model->names, place->file, &length);
		function.filename = pprof_string(pprof, text, length);
	}
	perftools__profiles__line__init(line);
	line->function_id = put_function(pprof, &function);
	line->line = place ? place->line : 0;
}

/*
 * Returns the lines of an address, innermost first: visible inlined functions, then the function
 * itself.
 */
static Perftools__Profiles__Line *make_lines(struct pprof *pprof, const struct process *process,
					     uint32_t a, size_t *count_out)
{
	const struct address *address = &process->addresses->list[a];
	const struct place *places = process->addresses->places;
	size_t last = address->first_place + address->place_count, count = 0;
	Perftools__Profiles__Line *lines =
		xt_calloc((size_t)address->place_count + 1, sizeof(*lines));

	for (size_t p = address->first_place; p + 1 < last; p++)
		if (process->frames->place_names[p])
			make_line(pprof, process, process->frames->place_names[p] - 1,
				  places[p].function, &places[p], &lines[count++]);
	make_line(pprof, process, process->frames->address_names[a] - 1, address->name,
		  address->place_count ? &places[last - 1] : NULL, &lines[count++]);
	*count_out = count;
	return lines;
}

uint64_t pprof_address_location(struct pprof *pprof, const struct process *process, uint32_t a)
{
	const struct address *address = &process->addresses->list[a];
	struct location_key location = {.address = address_value(address)};
	Perftools__Profiles__Line *lines;
	size_t line_count;

	if (pprof->address_locations[a])
		return pprof->address_locations[a];
	lines = make_lines(pprof, process, a, &line_count);
	location.function = lines[line_count - 1].function_id;
	if (address->module)
		location.mapping = put_mapping(pprof, process->model, address->module);
	pprof->address_locations[a] = put_location(pprof, &location, lines, line_count);
	free(lines);
	return pprof->address_locations[a];
}
