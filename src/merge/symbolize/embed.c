/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends symbols, source lines, and the source lines of compiled Python code to a log.
 */
#include "merge/symbolize/embed.h"

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/read/rows.h"
#include "log/write/writer.h"
#include "merge/symbolize/compiled_lines.h"
#include "merge/symbolize/addresses.h"
#include "merge/read/model.h"

#define CHUNK_ROWS	 4096
#define CHUNK_NAME_BYTES (1u << 20)
#define NAME_BYTES_MAX	 65535 /* longer names are damage; no compiler produces them */

struct embedding {
	struct xt_writer *writer;
	struct xt_table symbols;
	struct xt_table sources;
	const struct model *model;
	const struct addresses *addresses;
	uint64_t function_count;
};

static uint32_t module_id(const struct embedding *e, const struct address *address)
{
	return e->model->modules.rows[address->module].id;
}

static uint64_t virtual_address(const struct embedding *e, const struct address *address)
{
	return address_virtual(address, &e->model->modules.rows[address->module]);
}

static int compare_by(const void *a, const void *b, const struct embedding *e,
		      uint64_t (*value)(const struct embedding *e, const struct address *address))
{
	const struct address *x = &e->addresses->list[*(const uint32_t *)a];
	const struct address *y = &e->addresses->list[*(const uint32_t *)b];

	return ORDER(module_id(e, x), module_id(e, y)) ?: ORDER(value(e, x), value(e, y));
}

static uint64_t function_start(const struct embedding *e, const struct address *address)
{
	(void)e;
	return address->start;
}

static int compare_functions(const void *a, const void *b, void *context)
{
	return compare_by(a, b, context, function_start);
}

static int compare_addresses(const void *a, const void *b, void *context)
{
	return compare_by(a, b, context, virtual_address);
}

/* Makes room for a row with this many bytes of text in a column. Returns 0 or an error. */
static int make_room(struct embedding *e, struct xt_table *table, size_t length)
{
	return xt_table_has_room(table, length) ? 0 : xt_writer_add(e->writer, table);
}

static int add_function(struct embedding *e, const struct address *address)
{
	size_t length;
	const char *name = names_text(&e->model->names, address->name, &length);
	int error;

	if (address->name == NAME_EMPTY || length > NAME_BYTES_MAX)
		return 0;
	error = make_room(e, &e->symbols, length);
	if (error)
		return error;
	xt_write_symbol(&e->symbols, &(struct xt_row_symbol){module_id(e, address),
							     address->start,
							     address->bytes,
							     {name, length}});
	e->function_count++;
	return 0;
}

static int add_places(struct embedding *e, const struct address *address)
{
	for (uint32_t p = 0; p < address->place_count; p++) {
		const struct place *place = &e->addresses->places.list[address->first_place + p];
		size_t length, file_length;
		const char *name = names_text(&e->model->names, place->function, &length);
		const char *file = names_text(&e->model->names, place->file, &file_length);
		int error;

		if (length > NAME_BYTES_MAX)
			length = 0;
		if (file_length > NAME_BYTES_MAX)
			file_length = 0;
		error = make_room(e, &e->sources, length > file_length ? length : file_length);
		if (error)
			return error;
		xt_write_source(&e->sources, &(struct xt_row_source){
						     .module = module_id(e, address),
						     .address = virtual_address(e, address),
						     .function = {name, length},
						     .file = {file, file_length},
						     .line = place->line,
					     });
	}
	return 0;
}

/* Sorts the addresses and adds each distinct one. */
static int add_sorted(struct embedding *e, uint32_t *sorted,
		      int (*compare)(const void *, const void *, void *),
		      int (*add)(struct embedding *, const struct address *))
{
	const struct addresses *addresses = e->addresses;
	uint32_t last = UINT32_MAX;
	int error = 0;

	for (uint32_t a = 0; a < addresses->count; a++)
		sorted[a] = a;
	SORT_BY(sorted, addresses->count, compare, e);
	for (uint32_t i = 0; i < addresses->count && !error; i++) {
		const struct address *address = &addresses->list[sorted[i]];

		if (address->name == NAME_EMPTY && !address->place_count)
			continue;
		if (last == UINT32_MAX || compare(&last, &sorted[i], e))
			error = add(e, address);
		last = sorted[i];
	}
	return error;
}

static int add_mark(struct xt_writer *writer)
{
	struct xt_table table;
	int error = xt_table_init(&table, XT_KIND_META, 1, 64);

	if (error)
		return error;
	xt_write_meta(&table, &(struct xt_row_meta){xt_text("symbols.embedded"), xt_text("1")});
	error = xt_writer_add(writer, &table);
	xt_table_free(&table);
	return error;
}

/*
 * If no binary was found, leave the log without the mark, so that symbols can be embedded on the
 * traced machine.
 */
static bool has_names(const struct addresses *addresses)
{
	for (uint32_t a = 0; a < addresses->count; a++)
		if (addresses->list[a].name != NAME_EMPTY)
			return true;
	return false;
}

static bool is_embedded(const struct model *model)
{
	return !strcmp(model_meta(model, "symbols.embedded"), "1");
}

/* Does not mark an unfinished log as closed: only its own process knows whether it is complete. */
static int embed_append(const char *path, struct model *model, const struct addresses *addresses,
			const struct compiled_lines *compiled, uint64_t *function_count)
{
	struct embedding e = {.model = model, .addresses = addresses};
	uint32_t *sorted = xt_calloc(addresses->count + 1, sizeof(*sorted));
	int error = xt_table_init(&e.symbols, XT_KIND_SYMBOL, CHUNK_ROWS, CHUNK_NAME_BYTES);
	if (!error)
		error = xt_table_init(&e.sources, XT_KIND_SOURCE, CHUNK_ROWS, CHUNK_NAME_BYTES);
	if (!error)
		error = xt_writer_append(path, &e.writer);
	if (!error)
		error = add_sorted(&e, sorted, compare_functions, add_function);
	if (!error)
		error = xt_writer_add(e.writer, &e.symbols);
	if (!error)
		error = add_sorted(&e, sorted, compare_addresses, add_places);
	if (!error)
		error = xt_writer_add(e.writer, &e.sources);
	if (!error)
		error = compiled_lines_write(compiled, e.writer);
	if (!error && has_names(addresses))
		error = add_mark(e.writer);
	if (!error && model->damage.closed)
		error = xt_writer_add_end(e.writer);
	if (!error)
		error = xt_writer_flush(e.writer);
	xt_writer_close(e.writer);
	xt_table_free(&e.sources);
	xt_table_free(&e.symbols);
	free(sorted);
	*function_count = e.function_count;
	return error;
}

/* Warns that the log is damaged, because embedding succeeds even then. */
static void report_damage(const char *path, const struct xt_damage *damage, struct report *report)
{
	if (!damage->closed || damage->truncated)
		report_warn(report, "%s: was not closed; its end may be missing", path);
	if (damage->chunks_damaged || damage->chunks_missing)
		report_warn(report, "%s: %llu chunks are damaged or missing", path,
			    (unsigned long long)(damage->chunks_damaged + damage->chunks_missing));
}

/* torch_trace: a folder, or NULL for the one of the log. */
static void find_compiled(struct compiled_lines *lines, const struct model *model,
			  const char *log_path, const char *torch_trace)
{
	const char *slash = strrchr(log_path, '/');
	char *folder =
		slash ? xt_strndup(log_path, (size_t)(slash - log_path) + 1) : xt_strdup(".");

	compiled_lines_find(lines, model, torch_trace ? torch_trace : folder);
	free(folder);
}

int embed_symbols(const struct input *log, const char *torch_trace, struct debug_search *search,
		  struct report *report)
{
	struct xt_reader *reader;
	struct addresses addresses = {0};
	struct compiled_lines compiled = {0};
	struct model *model = NULL;
	uint64_t function_count = 0;
	int error;

	if (log->has_crash_buffer || log->is_sampled) {
		report_warn(report,
			    "%s: its process may still be writing%s; symbols are not "
			    "embedded",
			    log->path, log->is_sampled ? "" : " (its recovery file exists)");
		return 0;
	}
	reader = inputs_open(log->path, report);
	if (!reader)
		return 0;
	error = model_load(&model, reader);
	xt_reader_close(reader);
	if (error)
		return error;
	report_damage(log->path, &model->damage, report);
	/* The source lines of compiled code may come later, from another folder. */
	find_compiled(&compiled, model, log->path, torch_trace);
	if (!is_embedded(model))
		addresses_resolve(&addresses, model,
				  &(struct resolve_options){.drivers = true,
							    .places = true,
							    .search = search,
							    .log_path = log->path},
				  report);
	if (!has_names(&addresses) && !compiled.count) {
		report_note(report,
			    is_embedded(model) ? "%s: symbols are already embedded"
					       : "%s: no function has a name; nothing embedded",
			    log->path);
		goto out;
	}
	error = embed_append(log->path, model, &addresses, &compiled, &function_count);
	if (error)
		report_error(report, STATUS_FAILED, "%s: cannot embed symbols: %s", log->path,
			     strerror(-error));
	else
		report_note(report, "%s: %llu functions embedded", log->path,
			    (unsigned long long)function_count);
	error = 0;
out:
	compiled_lines_free(&compiled);
	addresses_free(&addresses);
	model_free(model);
	return error;
}
