/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pprof's profile format, compressed: call paths with all weights.
 *
 * Repeated fields of a protobuf message may be scattered, so the profile is written in pieces as
 * data arrives. Only ids of written entries are kept in memory. Mappings, functions and locations
 * are written on first use. Each total is a sample, with labels for its device, thread and ranges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/base/names.h"
#include "base/text.h"
#include "merge/export/formats.h"
#include "merge/naming/joined_paths.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"
#include "merge/sums/path_tables.h"
#include "profile.pb-c.h"

#define LABELS_MAX 8
#define RANGE_MARK "[NVTX "

#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; 16 adds a gzip header */
#define GZIP_MEMORY	 8
#define ROOM_BYTES	 65536

struct pprof {
	struct output *out;
	z_stream gzip;
	uint8_t *packed; /* buffer for one message */
	size_t packed_capacity;
	struct names strings;	/* a name is the string's index in the file */
	struct names functions; /* keys of written functions: a name is an id */
	struct names locations;
	uint64_t time_ns; /* earliest start; 0: none yet */

	/* State of the current process: */
	uint64_t *mappings; /* by index in the model's modules: id, or 0 */
	size_t mapping_capacity;
	uint64_t *address_locations; /* by index in addresses: id, or 0 */
	size_t address_capacity;

	uint64_t mapping_count; /* of all processes */
	uint64_t *path;		/* locations of the current sample, outermost first */
	size_t path_length;
	size_t path_capacity;
};

/* Returns the index of a string (any bytes) in the file. */
static int64_t string_of(struct pprof *pprof, const char *text, size_t length)
{
	char *clean = xt_malloc(text_clean_bound(length) + 1);
	uint32_t name = names_intern(&pprof->strings, clean, text_clean(clean, text, length, '\0'));

	free(clean);
	return name;
}

static int64_t name_string(struct pprof *pprof, const struct names *names, uint32_t name)
{
	size_t length;
	const char *text = names_text(names, name, &length);

	return string_of(pprof, text, length);
}

static int deflate_some(struct pprof *pprof, int flush)
{
	int result;

	pprof->gzip.next_out = (unsigned char *)output_room(pprof->out, ROOM_BYTES);
	pprof->gzip.avail_out = ROOM_BYTES;
	result = deflate(&pprof->gzip, flush);
	output_advance(pprof->out, (char *)pprof->gzip.next_out);
	return result;
}

/* Writes a part of the profile. The concatenated parts form one profile. */
static void put_piece(struct pprof *pprof, const Perftools__Profiles__Profile *piece)
{
	size_t length = perftools__profiles__profile__get_packed_size(piece);

	xt_grow(pprof->packed, pprof->packed_capacity, length);
	perftools__profiles__profile__pack(piece, pprof->packed);
	pprof->gzip.next_in = pprof->packed;
	pprof->gzip.avail_in = (unsigned)length;
	while (pprof->gzip.avail_in)
		deflate_some(pprof, Z_NO_FLUSH);
}

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
	put_piece(pprof, &piece);
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
	put_piece(pprof, &piece);
	free(line_list);
	return location.id;
}

/* Returns the location of a line without code. */
static uint64_t line_location(struct pprof *pprof, const struct function_key *function,
			      int64_t number)
{
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
	struct location_key location = {.line = number};

	line.function_id = location.function = put_function(pprof, function);
	line.line = number;
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
	string = string_of(pprof, text, length * 2);
	free(text);
	return string;
}

/* Returns the mapping of a module, written on first use. */
static uint64_t put_mapping(struct pprof *pprof, const struct model *model, uint32_t m)
{
	const struct module *module = &model->modules.rows[m];
	Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT, *list = &mapping;
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

	if (pprof->mappings[m])
		return pprof->mappings[m];
	mapping.id = ++pprof->mapping_count;
	mapping.memory_start = module->start;
	mapping.memory_limit = module->end;
	mapping.filename = name_string(pprof, &model->names, module->path);
	mapping.build_id = build_id_string(pprof, model, module->build_id);
	mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers =
		mapping.has_inline_frames = 1;
	piece.mapping = &list;
	piece.n_mapping = 1;
	put_piece(pprof, &piece);
	pprof->mappings[m] = mapping.id;
	return mapping.id;
}

/* Writes the mapping of the program first. */
static void begin_mappings(struct pprof *pprof, const struct process *process)
{
	const struct model *model = process->model;
	const char *program = model_meta(model, "process.exe");

	xt_grow(pprof->mappings, pprof->mapping_capacity, model->modules.count);
	xt_grow(pprof->address_locations, pprof->address_capacity,
		(size_t)process->frames->addresses->count + 1);
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

/* Returns the location of a line of a Python frame. */
static uint64_t python_location(struct pprof *pprof, const struct process *process,
				const struct python_line *python)
{
	const struct names *names = &process->model->names;
	bool has_name = python->place.function != NAME_EMPTY && !python->is_labelled;
	struct function_key function = {.start_line = python->first_line};

	function.name = function.system_name =
		has_name ? name_string(pprof, names, python->place.function)
			 : name_string(pprof, &process->paths->names, python->name);
	function.filename = name_string(pprof, names, python->place.file);
	return line_location(pprof, &function, python->place.line);
}

/* Fills in one line of a location. shown is a name in the process's paths. */
static void make_line(struct pprof *pprof, const struct process *process, uint32_t shown,
		      uint32_t system_name, const struct place *place,
		      Perftools__Profiles__Line *line)
{
	const struct names *names = &process->model->names;
	struct function_key function = {0};

	function.name = name_string(pprof, &process->paths->names, shown);
	function.system_name = name_string(pprof, names, system_name);
	if (place)
		function.filename = name_string(pprof, names, place->file);
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
	const struct address *address = &process->frames->addresses->list[a];
	const struct place *places = process->frames->addresses->places.list;
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

/* Returns the location of an address (index in process->frames->addresses). */
static uint64_t address_location(struct pprof *pprof, const struct process *process, uint32_t a)
{
	const struct address *address = &process->frames->addresses->list[a];
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

struct labels {
	Perftools__Profiles__Label rows[LABELS_MAX];
	Perftools__Profiles__Label *list[LABELS_MAX];
	size_t count;
};

static void push(struct pprof *pprof, uint64_t location)
{
	xt_append(pprof->path, pprof->path_length, pprof->path_capacity, location);
}

static void push_text(struct pprof *pprof, const char *text)
{
	struct function_key function = {.name = string_of(pprof, text, strlen(text))};

	push(pprof, line_location(pprof, &function, 0));
}

/* Appends a name of the path tree. */
static void push_name(struct pprof *pprof, const struct paths *paths, uint32_t name)
{
	struct function_key function = {.name = name_string(pprof, &paths->names, name)};

	push(pprof, line_location(pprof, &function, 0));
}

static void push_python(struct pprof *pprof, const struct process *process, uint32_t id)
{
	struct python_line line;

	for (uint32_t n = 0; frames_python_line(process->frames, id, n, &line); n++)
		push(pprof, python_location(pprof, process, &line));
}

static void push_item(struct pprof *pprof, const struct process *process,
		      const struct path_item *item)
{
	switch (item->kind) {
	case MERGED_TRUNCATED:
		push_text(pprof, FRAME_TRUNCATED);
		break;
	case MERGED_PYTHON:
		push_python(pprof, process, item->value);
		break;
	case MERGED_LABEL:
		push_name(pprof, process->paths, item->value);
		break;
	case MERGED_NATIVE:
		if (process->frames->address_names[item->value])
			push(pprof, address_location(pprof, process, item->value));
	}
}

static void push_stack(struct pprof *pprof, const struct process *process, uint32_t id)
{
	struct path_items list = {0};

	if (!frames_has_stack(process->frames, id)) {
		push_text(pprof, FRAME_UNATTRIBUTED);
		return;
	}
	joined_paths_list(process->frames, id, &list);
	for (size_t i = 0; i < list.count; i++)
		push_item(pprof, process, &list.items[i]);
	free(list.items);
}

/* Appends the nodes of the tree from `first` to its descendant `node`, by names only. */
static void push_nodes(struct pprof *pprof, const struct paths *paths, uint32_t first,
		       uint32_t node, bool with_ranges)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity), d = 0;

	while (first != PATH_ROOT && d < depth && chain[d] != first)
		d++;
	for (; d < depth; d++) {
		uint32_t name = paths->nodes[chain[d]].name;

		if (with_ranges || !begins_with(names_text(&paths->names, name, NULL), RANGE_MARK))
			push_name(pprof, paths, name);
	}
	free(chain);
}

/* Appends the CUDA function that a stack called, if it is known. */
static void push_api(struct pprof *pprof, const struct process *process, uint32_t stack,
		     uint32_t api)
{
	const struct frames *frames = process->frames;

	if (frames_knows_api(frames, stack, api))
		push_name(pprof, process->paths, frames_api_name(frames, stack, api));
}

/* Appends what a sampled thread did. */
static void push_sampled(struct pprof *pprof, const struct process *process,
			 const struct owner *owner)
{
	const char *label = cpu_sample_label((enum xt_cpu_state)owner->what, owner->stack);

	if (owner->stack)
		push_stack(pprof, process, owner->stack);
	push_api(pprof, process, owner->stack, MODEL_API_UNKNOWN);
	if (label)
		push_text(pprof, label);
}

/* Appends the path as in the tree, but without ranges and roots, which become labels. */
static void push_path(struct pprof *pprof, const struct process *process, const struct owner *owner,
		      uint32_t node)
{
	if (owner->leaf == LEAF_CPU) {
		push_sampled(pprof, process, owner);
		return;
	}
	if (owner_stand_in(owner)) {
		push_text(pprof, owner_stand_in(owner));
	} else if (owner_has_call(owner)) {
		push_stack(pprof, process, owner->stack);
		if (owner->stack || owner->leaf == LEAF_CALL)
			push_name(pprof, process->paths,
				  frames_api_name(process->frames, owner->stack, owner->api));
	}
	if (owner->marks & OWNER_IN_GRAPH)
		push_text(pprof, PATH_GRAPH_MARK);
	if (owner->creation) {
		const struct creation *creation =
			&process->model->nodes.creations.list[owner->creation];

		push_stack(pprof, process, creation->stack);
		push_api(pprof, process, creation->stack, creation->api);
	}
	if (owner->leaf == LEAF_IDLE)
		push_nodes(pprof, process->paths, path_of_idle_class(process->paths, node), node,
			   true);
	else if (owner->leaf != LEAF_CALL)
		push_name(pprof, process->paths, process->paths->nodes[node].name);
}

static void add_label(struct pprof *pprof, struct labels *labels, const char *key, const char *text)
{
	Perftools__Profiles__Label *label = &labels->rows[labels->count];

	perftools__profiles__label__init(label);
	label->key = string_of(pprof, key, strlen(key));
	label->str = string_of(pprof, text, strlen(text));
	labels->list[labels->count++] = label;
}

/* Includes names that the program gave to streams and contexts, as path roots do. */
static void label_gpu(struct pprof *pprof, struct labels *labels, const struct model *model,
		      uint32_t device)
{
	const char *title = model_title(model, XT_RANGE_NAME_DEVICE, 0, device);
	char *text = xt_asprintf(title[0] ? "GPU%u (%s)" : "GPU%u", device, title);

	add_label(pprof, labels, "device", text);
	free(text);
}

static void label_device(struct pprof *pprof, struct labels *labels, const struct model *model,
			 const struct owner *owner)
{
	const struct stream *stream = &model->streams.rows[owner->stream];
	uint32_t pool = MEMORY_WHAT_POOL(owner->what);
	char text[64];

	if (owner->leaf == LEAF_MEMORY && pool == MEMORY_POOL_HOST) {
		add_label(pprof, labels, "device", "host");
	} else if (owner->leaf == LEAF_MEMORY && pool == MEMORY_POOLS_MAX - 1) {
		add_label(pprof, labels, "device", "other");
	} else if (owner->leaf == LEAF_MEMORY) {
		label_gpu(pprof, labels, model, pool);
	} else if (stream->defined) {
		label_gpu(pprof, labels, model, stream->device);
		snprintf(text, sizeof(text), "context %u stream %u", stream->context,
			 stream->stream);
		add_label(pprof, labels, "stream", text);
	}
}

static void label_thread(struct pprof *pprof, struct labels *labels, const struct model *model,
			 uint32_t id)
{
	const struct thread *thread = &model->threads.rows[id < model->threads.count ? id : 0];
	const char *name = names_text(&model->names, thread->name, NULL);
	char *text;

	if (!thread->tid)
		return;
	text = xt_asprintf("%s (%u)", name[0] ? name : "[no name]", thread->tid);
	add_label(pprof, labels, "thread", text);
	free(text);
}

/* Adds all nested ranges as one label, outermost first: "step;forward". */
static void label_range(struct pprof *pprof, struct labels *labels, const struct process *process,
			uint32_t range)
{
	const struct ranges *ranges = &process->model->ranges;
	struct names *names = process->names->shown;
	char *text = NULL;

	if (!range || range >= ranges->nodes.count)
		return;
	for (; range != RANGE_NONE; range = ranges->nodes.list[range].parent) {
		const struct range_node *node = &ranges->nodes.list[range];
		uint32_t name =
			range_label(names, process->model, node->domain, node->text, "", "");
		char *longer = xt_asprintf("%s%s%s", names_text(names, name, NULL), text ? ";" : "",
					   text ? text : "");

		free(text);
		text = longer;
	}
	add_label(pprof, labels, "nvtx_range", text);
	free(text);
}

static void put_labels(struct pprof *pprof, struct labels *labels, const struct process *process,
		       const struct owner *owner)
{
	const struct model *model = process->model;
	uint32_t range = owner_has_call(owner) ? owner->range
					       : model->nodes.creations.list[owner->creation].range;

	label_device(pprof, labels, model, owner);
	label_thread(pprof, labels, model, owner->thread);
	label_range(pprof, labels, process, range);
	if (process->process_count > 1)
		add_label(pprof, labels, "process", process->label);
}

/* Writes a sample of the path, which was pushed outermost first. */
static void put_sample(struct pprof *pprof, struct labels *labels, const uint64_t weights[WEIGHTS],
		       uint32_t listed_weights)
{
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *list = &sample;
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t values[WEIGHTS];

	for (size_t i = 0; i < pprof->path_length / 2; i++) {
		uint64_t *other = &pprof->path[pprof->path_length - 1 - i], location = *other;

		*other = pprof->path[i];
		pprof->path[i] = location;
	}
	for (int w = 0; w < WEIGHTS; w++)
		if ((listed_weights & ~GRAPH_WEIGHTS) >> w & 1)
			values[sample.n_value++] = (int64_t)(weights[w] & INT64_MAX);
	sample.location_id = pprof->path;
	sample.n_location_id = pprof->path_length;
	sample.value = values;
	sample.label = labels->list;
	sample.n_label = labels->count;
	piece.sample = &list;
	piece.n_sample = 1;
	put_piece(pprof, &piece);
}

static void put_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	struct pprof *pprof = sink->state;
	struct labels labels = {.count = 0};

	if (total->owner.leaf == LEAF_NODE)
		return;
	pprof->path_length = 0;
	if (wanted_changes_paths(&sink->settings->wanted))
		push_nodes(pprof, process->paths, PATH_ROOT, node, true);
	else
		push_path(pprof, process, &total->owner, node);
	put_labels(pprof, &labels, process, &total->owner);
	put_sample(pprof, &labels, total->weights, process->listed_weights);
}

/* Writes samples of the weights that compare ranks. */
static void put_rank_weights(struct pprof *pprof, const struct run *run)
{
	for (size_t p = 0; p < run->compared->weights.count; p++) {
		const struct rank_weight *part = &run->compared->weights.list[p];
		uint64_t weights[WEIGHTS] = {0};
		struct labels labels = {.count = 0};

		weights[part->weight] = part->ns;
		pprof->path_length = 0;
		push_nodes(pprof, &run->paths, PATH_ROOT, part->common, false);
		add_label(pprof, &labels, "process", run->labels[part->log]);
		put_sample(pprof, &labels, weights, run_listed_weights(run));
	}
}

static int pprof_begin(struct sink *sink)
{
	struct pprof *pprof = sink->state;

	pprof->out = &sink->out;
	if (deflateInit2(&pprof->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS,
			 GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		xt_out_of_memory(0);
	names_init(&pprof->strings);
	names_init(&pprof->functions);
	names_init(&pprof->locations);
	return 0;
}

static void begin_process(struct sink *sink, const struct process *process)
{
	struct pprof *pprof = sink->state;
	uint64_t start_ns = process->log->header.start_realtime_ns;

	if (!pprof->time_ns || start_ns < pprof->time_ns)
		pprof->time_ns = start_ns;
	begin_mappings(pprof, process);
}

static const char *unit_of(enum weight weight)
{
	const char *unit = weight_unit(weight);

	return !strcmp(unit, "ns") ? "nanoseconds" : unit;
}

/* Declares the types of the sample values. */
static void put_types(struct pprof *pprof, const struct run *run)
{
	Perftools__Profiles__ValueType types[WEIGHTS], *list[WEIGHTS];
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t comments[3];
	char part[WANTED_BYTES + 32] = "part of the run: ";
	size_t mark = strlen(part);
	const char *comment = "xtrace " XTRACE_VERSION, *simulated = "simulated GPU";

	for (int w = 0; w < WEIGHTS; w++) {
		/* Samples are written before it is known whether these have a sum. */
		if (!((run_listed_weights(run) & ~GRAPH_WEIGHTS) >> w & 1))
			continue;
		const char *name = weight_specs[w].name, *unit = unit_of((enum weight)w);

		perftools__profiles__value_type__init(&types[w]);
		types[w].type = string_of(pprof, name, strlen(name));
		types[w].unit = string_of(pprof, unit, strlen(unit));
		list[piece.n_sample_type++] = &types[w];
	}
	comments[piece.n_comment++] = string_of(pprof, comment, strlen(comment));
	if (run->sums->recording.has_simulated_gpu)
		comments[piece.n_comment++] = string_of(pprof, simulated, strlen(simulated));
	if (run->selection) {
		wanted_describe(&run->settings->wanted, part + mark, sizeof(part) - mark);
		comments[piece.n_comment++] = string_of(pprof, part, strlen(part));
	}
	piece.sample_type = list;
	piece.default_sample_type = types[WEIGHT_GPU_TIME].type;
	piece.time_nanos = (int64_t)(pprof->time_ns & INT64_MAX);
	piece.comment = comments;
	put_piece(pprof, &piece);
}

static void put_strings(struct pprof *pprof)
{
	for (uint32_t s = 0; s < pprof->strings.count; s++) {
		Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
		char *text = (char *)names_text(&pprof->strings, s, NULL);

		piece.string_table = &text;
		piece.n_string_table = 1;
		put_piece(pprof, &piece);
	}
}

static void pprof_end(struct sink *sink, const struct run *run)
{
	struct pprof *pprof = sink->state;

	put_rank_weights(pprof, run);
	put_types(pprof, run);
	put_strings(pprof);
	while (deflate_some(pprof, Z_FINISH) != Z_STREAM_END)
		;
}

static void pprof_free_state(struct sink *sink)
{
	struct pprof *pprof = sink->state;

	deflateEnd(&pprof->gzip);
	names_free(&pprof->strings);
	names_free(&pprof->functions);
	names_free(&pprof->locations);
	free_all(pprof->packed, pprof->mappings, pprof->address_locations, pprof->path);
}

const struct exporter exporter_pprof = {
	.name = "pprof",
	.what = "Write call paths with all weights, binaries and labels, for pprof, Pyroscope and "
		"Parca (gzip)",
	.uses = USES_GRAPH_STACKS | USES_ALL_WEIGHTS | USES_ORIGINS | USES_CPU_LOGS,
	.state_bytes = sizeof(struct pprof),
	.begin = pprof_begin,
	.process = begin_process,
	.total = put_total,
	.end = pprof_end,
	.free = pprof_free_state,
};
