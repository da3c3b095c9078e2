/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the names of addresses, module by module. Symbols and source lines that the log has
 * embedded come first.
 */
#include "merge/symbolize/resolve.h"

#include <errno.h>
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

struct cached_module {
	struct open_module open; /* must be first: callers pass its address back */
	struct cached_module *next;
	char *path;
	void *build_id;
	size_t build_id_bytes;
	/* Locked by the thread that uses the module. */
	pthread_mutex_t lock;
	bool is_open;
	bool debug_info_tried;
	/* Protected by the lock of the cache: */
	size_t user_count;
	uint64_t bytes;
};

static void free_module(struct cached_module *module)
{
	debug_info_close(module->open.debug_info);
	symbols_close(module->open.symbols);
	pthread_mutex_destroy(&module->lock);
	free_all(module->path, module->build_id, module);
}

static struct cached_module *make_module(const char *path, const void *build_id,
					 size_t build_id_bytes)
{
	struct cached_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	pthread_mutex_init(&module->lock, NULL);
	module->path = strdup(path);
	module->build_id = malloc(build_id_bytes + 1);
	module->build_id_bytes = build_id_bytes;
	if (module->path && module->build_id) {
		memcpy(module->build_id, build_id, build_id_bytes);
		return module;
	}
	free_module(module);
	return NULL;
}

static bool is_module(const struct cached_module *module, const char *path, const void *build_id,
		      size_t build_id_bytes)
{
	return module->build_id_bytes == build_id_bytes &&
	       !memcmp(module->build_id, build_id, build_id_bytes) && !strcmp(module->path, path);
}

/* Finds or creates the module, moves it to the front and counts the caller as a user. */
static struct cached_module *take_module(struct module_cache *cache, const char *path,
					 const void *build_id, size_t build_id_bytes)
{
	struct cached_module **place, *module;

	pthread_mutex_lock(&cache->lock);
	for (place = &cache->modules; *place; place = &(*place)->next)
		if (is_module(*place, path, build_id, build_id_bytes))
			break;
	module = *place;
	if (module)
		*place = module->next;
	else
		module = make_module(path, build_id, build_id_bytes);
	if (module) {
		module->next = cache->modules;
		cache->modules = module;
		module->user_count++;
	}
	pthread_mutex_unlock(&cache->lock);
	return module;
}

/* Returns false if out of memory. */
static bool open_files(struct cached_module *module, struct debug_search *search,
		       bool wants_debug_info)
{
	struct open_module *open = &module->open;
	const struct elf_file *debug_file;

	if (!module->is_open) {
		open->result = symbols_open(module->path, module->build_id, module->build_id_bytes,
					    search, &open->symbols);
		open->error_number = errno;
		if (open->result == SYMBOLS_NO_MEMORY)
			return false;
		/* If descriptors ran out, try again for the next log. */
		module->is_open = open->symbols || (errno != EMFILE && errno != ENFILE);
	}
	if (open->debug_info)
		debug_info_begin_log(open->debug_info);
	if (!open->symbols || !wants_debug_info || module->debug_info_tried)
		return true;
	debug_file = symbols_debug_file(open->symbols);
	open->debug_info = debug_file ? debug_info_open(debug_file, module->path) : NULL;
	module->debug_info_tried = open->debug_info || !debug_file;
	return module->debug_info_tried;
}

struct open_module *module_cache_open(struct debug_search *search, const char *path,
				      const void *build_id, size_t build_id_bytes,
				      bool wants_debug_info)
{
	struct module_cache *cache = search->modules;
	struct cached_module *module = take_module(cache, path, build_id, build_id_bytes);

	if (!module)
		return NULL;
	pthread_mutex_lock(&module->lock);
	if (open_files(module, search, wants_debug_info))
		return &module->open;
	module_cache_release(cache, &module->open);
	return NULL;
}

/* Each module needs one or two of the process's descriptors, usually 1,024. */
#define KEPT_MODULES_MAX 128

/* Closes unused modules, the least recently used first, until the rest is within the limits. */
static void evict(struct module_cache *cache)
{
	uint64_t kept_bytes = 0;
	size_t kept_count = 0;

	for (struct cached_module **place = &cache->modules; *place;) {
		struct cached_module *module = *place;

		kept_bytes += module->bytes;
		kept_count++;
		if (module->user_count || (kept_bytes <= cache->limit_bytes &&
					   kept_count <= KEPT_MODULES_MAX && cache->limit_bytes)) {
			place = &module->next;
			continue;
		}
		kept_bytes -= module->bytes;
		kept_count--;
		*place = module->next;
		free_module(module);
	}
}

void module_cache_release(struct module_cache *cache, struct open_module *open)
{
	struct cached_module *module = (struct cached_module *)open;
	uint64_t bytes = open->symbols ? symbols_bytes(open->symbols, open->debug_info != NULL) : 0;

	pthread_mutex_unlock(&module->lock);
	pthread_mutex_lock(&cache->lock);
	module->bytes = bytes;
	module->user_count--;
	evict(cache);
	pthread_mutex_unlock(&cache->lock);
}

void module_cache_free(struct module_cache *cache)
{
	cache->limit_bytes = 0;
	evict(cache);
	pthread_mutex_destroy(&cache->lock);
}

/*
 * Returns whether the file was written after the trace. Only this shows that a module without build
 * id was rebuilt. A module loaded at run time may have been built just before, and its load time is
 * imprecise. Therefore compares with the first stack through it.
 */
static bool is_later(const struct model *model, const struct module *module, const char *path)
{
	uint64_t seen_ns = module->load_ns > model->start_ns && module->seen_ns != UINT64_MAX
				   ? module->seen_ns
				   : module->load_ns;
	uint64_t real_ns = seen_ns - model->start_ns + model->start_realtime_ns;
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
