/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the names of addresses, module by module. Symbols and source lines that the log has
 * embedded come first.
 */
#include "merge/symbolize/resolve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/symbolize/perf_map.h"

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
	if (addresses->place_count == UINT32_MAX)
		xt_out_of_memory(0);
	xt_grow(&addresses->places, &addresses->place_capacity, addresses->place_count + 1,
		sizeof(*addresses->places));
	if (!address->place_count++)
		address->first_place = (uint32_t)addresses->place_count;
	addresses->places[addresses->place_count++] = *place;
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

static int compare_by_module(const void *a, const void *b, void *context)
{
	const struct address *list = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (list[x].module != list[y].module)
		return list[x].module < list[y].module ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void resolve(struct addresses *addresses, struct model *model,
		    const struct resolve_options *options, struct report *report)
{
	uint32_t *order = xt_calloc(addresses->count + 1, sizeof(*order));

	for (uint32_t a = 0; a < addresses->count; a++)
		order[a] = a;
	qsort_r(order, addresses->count, sizeof(*order), compare_by_module, addresses->list);
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

void addresses_resolve(struct addresses *addresses, struct model *model,
		       const struct resolve_options *options, struct report *report)
{
	addresses_collect(addresses, model);
	resolve(addresses, model, options, report);
}
