/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes each table as a CSV file into a directory.
 *
 * A spreadsheet would run a name such as "=1+2" as a formula. Such names get a leading apostrophe,
 * which marks text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "merge/export/formats.h"
#include "merge/export/tables/table_writers.h"
#include "merge/steps/steps.h"
#include "merge/sums/calls.h"
#include "merge/sums/kernels.h"
#include "merge/lines/lines.h"
#include "merge/sums/processes.h"

static void put_quoted(struct output *out, const char *text, size_t length)
{
	output_text(out, "\"", 1);
	if (length && strchr("=+-@", text[0]))
		output_text(out, "'", 1);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '"')
			output_text(out, "\"", 1);
		output_text(out, &text[i], 1);
	}
	output_text(out, "\"", 1);
}

/* Texts of a log may have control characters. Names of paths are clean already. */
static void put_text(struct output *out, const struct cell *cell)
{
	char *clean = xt_malloc(text_clean_bound(cell->length) + 1);

	put_quoted(out, clean, text_clean(clean, cell->text, cell->length, '\0'));
	free(clean);
}

static void put_path(struct output *out, const struct cell *cell)
{
	size_t length;
	char *text = paths_text(cell->paths, cell->node, &length);

	put_quoted(out, text, length);
	free(text);
}

static void put_list(struct output *out, const struct cell *cell)
{
	char *text = cell_joined(cell, LIST_SEPARATOR);

	put_quoted(out, text, strlen(text));
	free(text);
}

static void put_cell(struct output *out, enum cell_type type, const struct cell *cell)
{
	if (cell->is_absent)
		return;
	switch (type) {
	case CELL_MOMENT:
		output_format(out, "%lld", (long long)cell->moment_ns);
		return;
	case CELL_REAL:
		output_format(out, "%.15g", cell->real);
		return;
	case CELL_TEXT:
		put_text(out, cell);
		return;
	case CELL_WORD:
		output_text(out, cell->text, cell->length);
		return;
	case CELL_PATH:
		put_path(out, cell);
		return;
	case CELL_TEXTS:
	case CELL_NUMBERS:
	case CELL_VALUES:
		put_list(out, cell);
		return;
	default:
		output_format(out, "%llu", (unsigned long long)cell->number);
	}
}

/* Writes a line of column names and one for each row (RFC 4180). */
static void put_table(struct output *out, const struct run *run, const struct table_def *def)
{
	struct table_rows rows = table_open(def, run);
	struct cell cells[COLUMNS_MAX];
	const char *comma = "";

	for (size_t c = 0; c < def->column_count; c++) {
		if (!column_is_flat(&def->columns[c]))
			continue;
		output_format(out, "%s%s", comma, def->columns[c].name);
		comma = ",";
	}
	output_text(out, "\r\n", 2);
	for (size_t r = 0; r < rows.count; r++) {
		table_row(&rows, r, cells);
		comma = "";
		for (size_t c = 0; c < def->column_count; c++) {
			if (!column_is_flat(&def->columns[c]))
				continue;
			output_format(out, "%s", comma);
			comma = ",";
			put_cell(out, def->columns[c].type, &cells[c]);
		}
		output_text(out, "\r\n", 2);
	}
	table_close(&rows);
}

/* The file is closed with the sink. */
static int open_file(struct sink *sink, const char *table)
{
	struct sink_file *file;
	int error;

	xt_grow(sink->files, sink->file_capacity, sink->file_count + 1);
	file = &sink->files[sink->file_count];
	file->path = xt_asprintf("%s/%s.csv", sink->out.path, table);
	error = output_open(&file->out, file->path);
	if (error)
		free(file->path);
	else
		sink->file_count++;
	return error;
}

const struct exporter *const all_analyses[] = {&analysis_calls,	    &analysis_kernels,
					       &analysis_processes, &analysis_steps,
					       &analysis_lines,	    NULL};

static int csv_begin(struct sink *sink)
{
	int error = 0;

	for (size_t t = 0; table_defs[t] && !error; t++)
		error = open_file(sink, table_defs[t]->name);
	return error;
}

static void csv_end(struct sink *sink, const struct run *run)
{
	for (size_t t = 0; table_defs[t]; t++)
		put_table(&sink->files[t].out, run, table_defs[t]);
}

const struct exporter exporter_csv = {
	.name = "csv",
	.what = "Write all tables in full as CSV files into DIR",
	.value = "DIR",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_FOLDER | USES_FINDINGS | USES_RANKS,
	.analyses = all_analyses,
	.begin = csv_begin,
	.end = csv_end,
};
