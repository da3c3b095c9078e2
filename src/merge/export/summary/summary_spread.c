/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_spread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary/summary_json_tables.h"
#include "merge/export/summary/summary_path.h"
#include "merge/export/summary/summary_text.h"
#include "merge/ranks/wait_cause.h"

#define JSON_ROWS_MAX 100

static const struct column columns[] = {
	{"mean", 12, 0, false}, {"shortest", 12, 80, false}, {"longest", 12, 0, false}};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

int summary_put_rank_path(struct output *out, const struct column *row_columns, size_t count,
			  const char *const *figures, const struct run *run, size_t log,
			  uint32_t node)
{
	char *where = wait_cause_where(&run->paths, node), *path = NULL, *text, *clean;
	bool has_line = out->columns && node != PATH_ROOT;
	size_t length;
	int error = 0;

	if (has_line)
		path = strdup("");
	else if (node != PATH_ROOT)
		path = paths_text(&run->paths, node, &length);
	if (!where || (!path && node != PATH_ROOT) ||
	    asprintf(&text, "%s%s%s%s%s", run->labels[log], where[0] || !has_line ? ": " : "",
		     where, where[0] && !has_line ? ": " : "", path ? path : CAUSE_UNKNOWN) < 0)
		text = NULL;
	free(path);
	free(where);
	clean = text ? text_clean_copy(text) : NULL;
	free(text);
	if (!clean)
		return -ENOMEM;
	put_figures(out, row_columns, count, figures);
	put_cell(out, clean, strlen(clean));
	if (has_line) {
		output_format(out, "\n%*s", ROW_INDENT, "");
		error = put_path(out, &run->paths, node, 0);
	}
	output_text(out, "\n", 1);
	free(clean);
	return error;
}

static int put_spread(struct output *out, const struct run *run, uint32_t node)
{
	const struct path_spread *spread = &run->collectives_report.spread.paths[node];
	const uint64_t values_ns[COLUMNS] = {path_spread_mean_ns(spread), spread->min_ns,
					     spread->max_ns};
	char texts[COLUMNS][TIME_BYTES];
	const char *figures[COLUMNS];

	for (size_t c = 0; c < COLUMNS; c++) {
		format_time(texts[c], values_ns[c]);
		figures[c] = texts[c];
	}
	return summary_put_rank_path(out, columns, COLUMNS, figures, run, spread->max_log, node);
}

int summary_put_spread(struct sink *sink, const struct run *run)
{
	const struct rank_spread *spread = &run->collectives_report.spread;
	size_t shown = rows_to_show(spread->row_count, sink->settings);
	struct output *out = &sink->out;
	int error = 0;

	if (!spread->row_count)
		return 0;
	put_top_title(out, "GPU time that differs between ranks", shown, spread->row_count);
	put_heads(out, columns, COLUMNS, "longest in, line and call path");
	for (size_t r = 0; r < shown && !error; r++)
		error = put_spread(out, run, spread->rows[r]);
	return error;
}

int put_spread_json(struct json *json, const struct run *run)
{
	const struct rank_spread *spread = &run->collectives_report.spread;
	size_t count = spread->row_count < JSON_ROWS_MAX ? spread->row_count : JSON_ROWS_MAX;
	int error = 0;

	json_begin_array(json, "spread");
	for (size_t r = 0; r < count && !error; r++) {
		uint32_t node = spread->rows[r];
		const struct path_spread *row = &spread->paths[node];
		char *where = wait_cause_where(&run->paths, node);

		json_begin_object(json, NULL);
		json_string(json, "process", run->labels[row->max_log]);
		json_u64(json, "process_count", row->count);
		json_u64(json, "mean_ns", path_spread_mean_ns(row));
		json_u64(json, "min_ns", row->min_ns);
		json_u64(json, "max_ns", row->max_ns);
		json_string(json, "where", where ? where : "");
		error = where ? summary_json_path(json, "path", &run->paths, node) : -ENOMEM;
		json_end_object(json);
		free(where);
	}
	json_end_array(json);
	return error;
}
