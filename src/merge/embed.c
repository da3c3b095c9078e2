/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a log self-contained.
 */
#include "merge/embed.h"

#include <stdio.h>

#include "log/writer.h"
#include "merge/addresses.h"
#include "merge/grow.h"
#include "merge/model.h"

#define CHUNK_ROWS	 4096
#define CHUNK_NAME_BYTES (1u << 20)
#define NAME_BYTES_MAX	 65535 /* no compiler makes longer names; what does is no name */

struct order {
	const struct model *model;
	const struct address *list;
};

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct address *x = &order->list[*(const uint32_t *)a];
	const struct address *y = &order->list[*(const uint32_t *)b];
	uint32_t mx = order->model->modules.rows[x->module].id;
	uint32_t my = order->model->modules.rows[y->module].id;

	if (mx != my)
		return mx < my ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* One row for each function: the addresses are sorted, so that those of one stand together. */
static int add_functions(struct xt_writer *writer, struct xt_table *table, struct order *order,
			 const uint32_t *sorted, uint32_t count, uint64_t *function_count)
{
	const uint32_t *last = NULL;
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		const struct address *address = &order->list[sorted[i]];
		size_t length;
		const char *name = names_text(&order->model->names, address->name, &length);

		if (address->name == NAME_EMPTY || length > NAME_BYTES_MAX ||
		    (last && !compare_functions(last, &sorted[i], order)))
			continue;
		last = &sorted[i];
		if (!xt_table_has_room(table, length))
			error = xt_writer_add(writer, table);
		if (error)
			break;
		xt_table_put(table, XT_SYMBOL_MODULE,
			     order->model->modules.rows[address->module].id);
		xt_table_put(table, XT_SYMBOL_START, address->start);
		xt_table_put(table, XT_SYMBOL_BYTES, address->bytes);
		xt_table_put_bytes(table, XT_SYMBOL_NAME, name, length);
		xt_table_end_row(table);
		(*function_count)++;
	}
	return error ? error : xt_writer_add(writer, table);
}

static int add_mark(struct xt_writer *writer)
{
	static const char key[] = "symbols.embedded";
	struct xt_table table;
	int error = xt_table_init(&table, XT_KIND_META, 1, 64);

	if (error)
		return error;
	xt_table_put_bytes(&table, XT_META_KEY, key, strlen(key));
	xt_table_put_bytes(&table, XT_META_VALUE, "1", 1);
	xt_table_end_row(&table);
	error = xt_writer_add(writer, &table);
	xt_table_free(&table);
	return error;
}

static int append(const char *path, struct model *model, const struct addresses *addresses,
		  uint64_t *function_count)
{
	uint32_t *sorted = calloc(addresses->count + 1, sizeof(*sorted));
	struct order order = {model, addresses->list};
	struct xt_writer *writer = NULL;
	struct xt_table table = {0};
	int error = -ENOMEM;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t a = 0; a < addresses->count; a++)
		sorted[a] = a;
	qsort_r(sorted, addresses->count, sizeof(*sorted), compare_functions, &order);
	error = xt_table_init(&table, XT_KIND_SYMBOL, CHUNK_ROWS, CHUNK_NAME_BYTES);
	if (!error)
		error = xt_writer_append(path, &writer);
	if (!error)
		error = add_functions(writer, &table, &order, sorted, addresses->count,
				      function_count);
	if (!error)
		error = add_mark(writer);
	if (!error)
		error = xt_writer_add_end(writer);
	if (!error)
		error = xt_writer_flush(writer);
	xt_writer_close(writer);
	xt_table_free(&table);
	free(sorted);
	return error;
}

/* Where no binary was found, the log is left to be completed where they are. */
static bool has_names(const struct addresses *addresses)
{
	for (uint32_t a = 0; a < addresses->count; a++)
		if (addresses->list[a].name != NAME_EMPTY)
			return true;
	return false;
}

int embed_symbols(const struct input *log, struct report *report)
{
	struct xt_reader *reader;
	struct addresses addresses = {0};
	struct model *model = NULL;
	uint64_t function_count = 0;
	int error = 0;

	if (log->has_spool) {
		report_warn(report,
			    "%s: its process has not closed it (there is a spool); symbols are "
			    "not embedded",
			    log->path);
		return 0;
	}
	reader = inputs_open(log->path, report);
	if (!reader)
		return 0;
	error = model_load(&model, reader);
	xt_reader_close(reader);
	if (error)
		return error;
	if (!strcmp(model_meta(model, "symbols.embedded"), "1")) {
		report_note(report, "%s: has its symbols already", log->path);
		goto out;
	}
	error = addresses_resolve(&addresses, model, ADDRESSES_ALL, report);
	if (error)
		goto out;
	if (!has_names(&addresses)) {
		report_note(report, "%s: no function has a name; nothing embedded", log->path);
		goto out;
	}
	error = append(log->path, model, &addresses, &function_count);
	if (error)
		report_error(report, STATUS_FAILED, "%s: symbols cannot be embedded: %s", log->path,
			     strerror(-error));
	else
		report_note(report, "%s: %llu functions embedded", log->path,
			    (unsigned long long)function_count);
	error = 0;
out:
	addresses_free(&addresses);
	model_free(model);
	return error;
}
