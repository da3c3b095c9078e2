/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the names of addresses, module by module. Symbols and source lines that the log has
 * embedded come first.
 *
 * Code that a process generated at run time is in no module. JIT compilers list its names in
 * /tmp/perf-<pid>.map, one line "start size name" for each function, in hexadecimal. The file is
 * untrusted: any user can create it. It outlives its process, and a later process may reuse the
 * number. A file is rejected unless it was written during the recording by the owner of the log.
 * Unless the names are embedded in the log, merge must run on the machine that recorded it.
 */
#include "merge/symbolize/addresses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/tables.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "log/base/hash_table.h"
#include "log/base/regular_file.h"

bool module_is_library(const char *file_name, const char *library)
{
	size_t length = strlen(library);

	return !strncmp(file_name, library, length) &&
	       (!file_name[length] || file_name[length] == '.' || file_name[length] == ' ');
}

const char *module_file_name(const struct model *model, uint32_t module)
{
	return base_name(names_text(&model->names, model->modules.rows[module].path, NULL));
}

bool module_is_driver(const struct model *model, uint32_t module)
{
	static const char *const libraries[] = {"libcuda.so", "libcupti.so", "libxtrace_inject.so"};
	const char *file_name = module_file_name(model, module);

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (module_is_library(file_name, libraries[i]))
			return true;
	return false;
}

/* Returns the index of the address, which is added if it is new. */
static uint32_t add_address(struct addresses *addresses, struct xt_hash_table *table,
			    size_t *capacity, uint64_t frame, uint32_t module)
{
	uint32_t hash = xt_hash_u64(frame ^ (uint64_t)module << 40);
	struct xt_hash_slot *slot;

	xt_hash_require(table, (size_t)addresses->count + 1);
	for (slot = xt_hash_first(table, hash); slot->item; slot = xt_hash_next(table, slot)) {
		const struct address *known = &addresses->list[slot->item - 1];

		if (known->frame == frame && known->module == module)
			return slot->item - 1;
	}
	xt_append(addresses->list, addresses->count, *capacity,
		  (struct address){.frame = frame, .module = module});
	*slot = (struct xt_hash_slot){hash, addresses->count};
	return addresses->count - 1;
}

/* Collects the distinct addresses of the model's frames, and frees the frames. */
static void addresses_collect(struct addresses *addresses, struct model *model)
{
	struct xt_hash_table table = {0};
	size_t capacity = 0;

	*addresses = (struct addresses){0};
	addresses->by_frame = xt_calloc(model->frames.count + 1, sizeof(*addresses->by_frame));
	for (size_t id = 1; id < model->stacks.count; id++) {
		const struct stack *stack = &model->stacks.rows[id];

		for (uint32_t f = 0; f < stack->frame_count; f++) {
			size_t place = stack->first_frame + f;
			struct address address = {.frame = model->frames.list[place]};
			struct module *module;

			address.module =
				model_module_of(model, stack, place, address_lookup(&address));
			module = &model->modules.rows[address.module];
			module->seen_ns = smaller(module->seen_ns, stack->seen_ns);
			addresses->by_frame[place] = add_address(addresses, &table, &capacity,
								 address.frame, address.module);
		}
	}
	xt_hash_free(&table);
	free_all(model->frames.list, model->frame_modules.list);
	model->frames.list = NULL;
	model->frame_modules.list = NULL;
	model->frames.capacity = model->frame_modules.capacity = 0;
}

void addresses_free(struct addresses *addresses)
{
	free_all(addresses->list, addresses->by_frame, addresses->places.list);
	*addresses = (struct addresses){0};
}

static void add_places(struct unnamed_modules *unnamed, const char *path, uint64_t place_count)
{
	size_t length = strlen(path), m = 0;
	char *clean = xt_malloc(text_clean_bound(length) + 1);

	clean[text_clean(clean, path, length, '\0')] = '\0';
	while (m < unnamed->count && strcmp(unnamed->list[m].path, clean) != 0)
		m++;
	if (m < unnamed->count)
		free(clean);
	else
		list_append(*unnamed, (struct unnamed_module){clean, 0});
	unnamed->list[m].place_count += place_count;
}

COMPARE_BY(compare_unnamed, struct unnamed_module, DOWN(place_count) UP_TEXT(path))

void unnamed_modules_add(struct unnamed_modules *unnamed, const struct model *model,
			 const struct addresses *addresses, const uint32_t *shown)
{
	uint64_t *counts = xt_calloc(model->modules.count + 1, sizeof(*counts));

	for (uint32_t a = 0; a < addresses->count; a++) {
		const struct address *address = &addresses->list[a];

		counts[address->module] += shown[a] && address->name == NAME_EMPTY;
	}
	for (size_t m = 1; m < model->modules.count; m++)
		if (counts[m])
			add_places(unnamed,
				   names_text(&model->names, model->modules.rows[m].path, NULL),
				   counts[m]);
	free(counts);
	SORT(unnamed->list, unnamed->count, compare_unnamed);
}

void unnamed_modules_free(struct unnamed_modules *unnamed)
{
	for (size_t m = 0; m < unnamed->count; m++)
		free(unnamed->list[m].path);
	free(unnamed->list);
	*unnamed = (struct unnamed_modules){0};
}

#define LINE_BYTES    65536
#define BYTES_MAX     (INT64_C(1) << 30)
#define START_ERROR_S 2	 /* precision of the process's start time */
#define END_ERROR_S   10 /* map and log are written in any order when the process ends */

struct wanted {
	uint64_t value;
	struct address *address;
	bool is_ambiguous;
};

COMPARE_BY(compare_wanted, struct wanted, UP(value))

/* Returns whether the log's owner wrote the map while the process lived. */
static bool is_of_process(const struct stat *map, const struct model *model, const char *log_path)
{
	int64_t start_s = strtoll(model_meta(model, "process.started"), NULL, 10);
	struct stat log;

	return start_s && !stat(log_path, &log) && map->st_uid == log.st_uid &&
	       map->st_size <= BYTES_MAX && map->st_mtim.tv_sec + START_ERROR_S >= start_s &&
	       map->st_mtim.tv_sec <= log.st_mtim.tv_sec + END_ERROR_S;
}

/* Opens the map of the log's process. Returns NULL if there is none. */
static FILE *open_map(const struct model *model, const char *log_path)
{
	char path[64];
	struct utsname here;
	struct stat status;
	FILE *map;
	int fd;

	if (uname(&here) < 0 || strcmp(here.nodename, model_meta(model, "host.name")) != 0)
		return NULL;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", model->pid);
	fd = xt_regular_open_at(AT_FDCWD, path, O_NOFOLLOW, &status);
	if (fd < 0)
		return NULL;
	map = is_of_process(&status, model, log_path) ? fdopen(fd, "r") : NULL;
	if (!map)
		close(fd);
	return map;
}

/* Parses "start size name". Returns the terminated name, or NULL if the line is malformed. */
static char *parse_line(char *line, uint64_t *start, uint64_t *bytes)
{
	char *end;

	errno = 0;
	*start = strtoull(line, &end, 16);
	if (errno || end == line || *end != ' ')
		return NULL;
	line = end + 1;
	*bytes = strtoull(line, &end, 16);
	if (errno || end == line || *end != ' ' || !*bytes || *start + *bytes < *start)
		return NULL;
	end[1 + strcspn(end + 1, "\r\n")] = '\0';
	return end[1] ? end + 1 : NULL;
}

static void name_wanted(struct model *model, struct wanted *wanted, uint32_t count, uint64_t start,
			uint64_t bytes, const char *name)
{
	uint32_t low = FIRST_NOT(i, 0, count, wanted[i].value < start);

	for (; low < count && wanted[low].value - start < bytes; low++) {
		struct address *address = wanted[low].address;
		uint32_t interned = names_intern(&model->names, name, strlen(name));

		wanted[low].is_ambiguous |=
			address->name != NAME_EMPTY && address->name != interned;
		address->name = interned;
		address->start = start;
		address->bytes = bytes;
	}
}

/* Skips lines longer than LINE_BYTES. */
static void read_map(FILE *map, struct model *model, struct wanted *wanted, uint32_t count)
{
	char *line = xt_malloc(LINE_BYTES);
	bool is_begin = true;

	while (fgets(line, LINE_BYTES, map)) {
		bool is_whole = strchr(line, '\n') || feof(map);
		uint64_t start, bytes;
		char *name = is_begin && is_whole ? parse_line(line, &start, &bytes) : NULL;

		if (name)
			name_wanted(model, wanted, count, start, bytes, name);
		is_begin = is_whole;
	}
	free(line);
}

/* The map has no times. If it lists several functions at an address, the called one is unknown. */
static void drop_ambiguous(struct wanted *wanted, uint32_t count, struct report *report,
			   const char *log_path)
{
	uint32_t dropped = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct address *address = wanted[i].address;

		if (!wanted[i].is_ambiguous)
			continue;
		address->name = NAME_EMPTY;
		address->start = address->bytes = 0;
		dropped++;
	}
	if (dropped)
		report_warn_once(report,
				 "%s: %u address%s in stacks had several generated functions; they "
				 "have no names",
				 log_path, dropped, dropped == 1 ? "" : "es");
}

/*
 * Names the addresses order[0 .. count), which are outside all modules, from the map of the
 * process that wrote the log at log_path. Addresses with several functions stay unnamed, with a
 * warning. A missing map is not an error.
 */
static void perf_map_resolve(struct addresses *addresses, struct model *model, const char *log_path,
			     const uint32_t *order, uint32_t count, struct report *report)
{
	FILE *map = open_map(model, log_path);
	struct wanted *wanted;

	if (!map)
		return;
	wanted = xt_calloc(count, sizeof(*wanted));
	for (uint32_t i = 0; i < count; i++) {
		struct address *address = &addresses->list[order[i]];

		wanted[i] = (struct wanted){address_lookup(address), address, false};
	}
	qsort(wanted, count, sizeof(*wanted), compare_wanted);
	read_map(map, model, wanted, count);
	drop_ambiguous(wanted, count, report, log_path);
	free(wanted);
	fclose(map);
}

#define NESTING_MAX 64 /* limit of the backward search for an enclosing function */

/* Returns the function around an ELF virtual address of a module (by XT_MODULE_ID), or NULL. */
static const struct embedded_symbol *embedded_symbol_find(const struct model *model,
							  uint32_t module, uint64_t address)
{
	const struct embedded_symbol *symbols = model->symbols.rows;
	size_t low = FIRST_NOT(i, 1, model->symbols.count,
			       symbols[i].module < module || (symbols[i].module == module &&
							      symbols[i].start <= address));

	for (size_t i = low; --i && low - i <= NESTING_MAX;)
		if (symbols[i].module != module)
			return NULL;
		else if (address - symbols[i].start < symbols[i].bytes)
			return &symbols[i];
	return NULL;
}

/* Returns the places at that address, innermost first, and their number. */
static const struct embedded_source *embedded_sources_find(const struct model *model,
							   uint32_t module, uint64_t address,
							   uint32_t *count_out)
{
	const struct embedded_source *sources = model->sources.rows;
	size_t end, low = FIRST_NOT(i, 1, model->sources.count,
				    sources[i].module < module || (sources[i].module == module &&
								   sources[i].address < address));

	for (end = low; end < model->sources.count; end++)
		if (sources[end].module != module || sources[end].address != address)
			break;
	*count_out = (uint32_t)(end - low);
	return sources + low;
}

/*
 * Returns whether the file was written after the trace. Only this shows that a module without build
 * id was rebuilt. A module loaded at run time may have been built just before, and its load time is
 * imprecise. Therefore compares with the first stack through it.
 */
static bool is_later(const struct model *model, const struct module *module, const char *path)
{
	uint64_t seen_ns = module->load_ns > model->times.start_ns && module->seen_ns != UINT64_MAX
				   ? module->seen_ns
				   : module->load_ns;
	uint64_t real_ns = seen_ns - model->times.start_ns + model->times.start_realtime_ns;
	struct stat status;

	return !stat(path, &status) && status.st_mtim.tv_sec > 0 &&
	       (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec >
		       real_ns;
}

/* State for the module being resolved. */
struct resolving {
	struct addresses *addresses;
	struct model *model;
	const struct module *module;
	const struct resolve_options *options;
	struct report *report;
	struct open_module *open; /* NULL: not opened yet, or no file has names */
	struct symbols *symbols;
	struct debug_info *debug_info; /* NULL: missing or not requested */
	bool tried;
};

/* Warns if names cannot be found. */
static void report_result(const struct resolving *r, const char *path, enum symbols_result result)
{
	if (result == SYMBOLS_OK && symbols_damaged(r->symbols))
		report_warn_once(
			r->report,
			"%s: .gnu_debugdata is damaged; some of its functions have no names", path);
	else if (result == SYMBOLS_NO_FILE)
		report_warn_once(r->report, "%s: %s; its functions have no names", path,
				 r->open->error_number == ESPIPE ? "not a regular file"
								 : strerror(r->open->error_number));
	else if (result == SYMBOLS_NOT_ELF)
		report_warn_once(r->report, "%s: not an ELF file; its functions have no names",
				 path);
	else if (result == SYMBOLS_OTHER_BUILD)
		report_warn_once(r->report,
				 "%s: not the file that was traced (build id differs); its "
				 "functions have no names",
				 path);
	else if (result == SYMBOLS_LATER)
		report_warn_once(r->report,
				 "%s: changed since the trace, and has no build id; its functions "
				 "have no names",
				 path);
}

/*
 * Opens the module's file. Reports no problems if the log has embedded symbols, since these are
 * complete.
 */
static void open_names(struct resolving *r)
{
	const struct names *names = &r->model->names;
	const char *path = names_text(names, r->module->path, NULL), *build_id;
	size_t build_id_bytes;
	enum symbols_result result;

	r->tried = true;
	build_id = names_text(names, r->module->build_id, &build_id_bytes);
	if (path[0] != '/') /* the vDSO or generated code, which has no file */
		return;
	r->open = module_cache_open(r->options->search, path, build_id, build_id_bytes,
				    r->options->places);
	if (!r->open)
		xt_out_of_memory(0);
	result = r->open->result;
	if (result == SYMBOLS_OK && !build_id_bytes && is_later(r->model, r->module, path))
		result = SYMBOLS_LATER;
	if (result == SYMBOLS_OK) {
		r->symbols = r->open->symbols;
		r->debug_info = r->open->debug_info;
	}
	if (strcmp(model_meta(r->model, "symbols.embedded"), "1") != 0)
		report_result(r, path, result);
}

static void close_names(struct resolving *r)
{
	const char *problem = r->debug_info ? debug_info_problem(r->debug_info) : NULL;

	if (problem)
		report_warn_once(r->report,
				 "%s: its debug information %s; inlined functions and lines are "
				 "missing",
				 names_text(&r->model->names, r->module->path, NULL), problem);
	if (r->open)
		module_cache_release(r->options->search->modules, r->open);
}

/* Interns a text that may be NULL. */
static uint32_t intern_text(struct model *model, const char *text)
{
	return text ? names_intern(&model->names, text, strlen(text)) : NAME_EMPTY;
}

static void add_place(struct addresses *addresses, struct address *address,
		      const struct place *place)
{
	if (addresses->places.count == UINT32_MAX)
		xt_out_of_memory(0);
	if (!address->place_count++)
		address->first_place = (uint32_t)addresses->places.count;
	list_append(addresses->places, *place);
}

static void find_places(struct resolving *r, struct address *address, const struct symbol *symbol)
{
	const struct debug_place *places;
	size_t count = 0;

	debug_info_find(r->debug_info, address_virtual(address, r->module), symbol, &places,
			&count);
	for (size_t p = 0; p < count; p++) {
		struct place place = {
			.function = intern_text(r->model, places[p].function),
			.file = intern_text(r->model, places[p].file),
			.line = places[p].line,
		};

		if (p + 1 == count && !symbol) {
			address->name = place.function;
			address->start = places[p].start;
			address->bytes = places[p].bytes;
		}
		if (p + 1 == count)
			place.function = address->name;
		add_place(r->addresses, address, &place);
	}
}

static void find_names(struct resolving *r, struct address *address)
{
	const struct symbol *symbol;

	if (!r->tried)
		open_names(r);
	symbol = r->symbols ? symbols_find(r->symbols, address_virtual(address, r->module)) : NULL;
	if (symbol) {
		address->name = intern_text(r->model, symbol->name);
		address->start = symbol->start;
		address->bytes = symbol->bytes;
	}
	if (r->debug_info)
		find_places(r, address, symbol);
}

/* Looks up the symbols embedded in the log. *found tells whether there is one. */
static void find_embedded(struct resolving *r, struct address *address, bool *found)
{
	uint64_t virtual = address_virtual(address, r->module);
	const struct embedded_symbol *symbol =
		embedded_symbol_find(r->model, r->module->id, virtual);
	const struct embedded_source *source;
	uint32_t count;

	*found = symbol;
	if (!symbol) /* places belong to a symbol */
		return;
	address->name = symbol->name;
	address->start = symbol->start;
	address->bytes = symbol->bytes;
	source = embedded_sources_find(r->model, r->module->id, virtual, &count);
	for (uint32_t s = 0; s < count && r->options->places; s++)
		add_place(r->addresses, address, &source[s].place);
}

/* Names the addresses order[0 .. count). All are in one module, or all in none (module 0). */
static void resolve_module(struct resolving *r, const uint32_t *order, uint32_t count)
{
	bool is_code = r->module != r->model->modules.rows; /* the module has a file */

	if (!is_code && strcmp(model_meta(r->model, "symbols.embedded"), "1") != 0)
		perf_map_resolve(r->addresses, r->model, r->options->log_path, order, count,
				 r->report);
	for (uint32_t i = 0; i < count; i++) {
		struct address *address = &r->addresses->list[order[i]];
		bool found;

		find_embedded(r, address, &found);
		if (!found && is_code)
			find_names(r, address);
	}
	close_names(r);
}

COMPARE_INDEXES_BY(compare_by_module, struct address, UP(module))

void addresses_resolve(struct addresses *addresses, struct model *model,
		       const struct resolve_options *options, struct report *report)
{
	uint32_t *order;

	addresses_collect(addresses, model);
	order = xt_calloc(addresses->count + 1, sizeof(*order));
	for (uint32_t a = 0; a < addresses->count; a++)
		order[a] = a;
	SORT_BY(order, addresses->count, compare_by_module, addresses->list);
	for (uint32_t first = 0, next; first < addresses->count; first = next) {
		uint32_t module = addresses->list[order[first]].module;

		for (next = first; next < addresses->count; next++)
			if (addresses->list[order[next]].module != module)
				break;
		if (module && !options->drivers && module_is_driver(model, module))
			continue;
		resolve_module(
			&(struct resolving){
				.addresses = addresses,
				.model = model,
				.module = &model->modules.rows[module],
				.options = options,
				.report = report,
			},
			order + first, next - first);
	}
	free(order);
}
