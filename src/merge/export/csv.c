/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes each table as a CSV file into a directory.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "merge/export/formats.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/calls.h"
#include "merge/sums/kernels.h"
#include "merge/sums/processes.h"

/* The file is closed with the sink. */
static int open_file(struct sink *sink, const char *table)
{
	struct sink_file *file;
	int error;

	xt_grow(&sink->files, &sink->file_capacity, sink->file_count + 1, sizeof(*sink->files));
	file = &sink->files[sink->file_count];
	file->path = xt_asprintf("%s/%s.csv", sink->out.path, table);
	error = output_open(&file->out, file->path);
	if (error)
		free(file->path);
	else
		sink->file_count++;
	return error;
}

const struct exporter *const all_analyses[] = {&analysis_calls, &analysis_kernels,
					       &analysis_processes, NULL};

static int begin(struct sink *sink)
{
	int error = 0;

	for (size_t t = 0; table_defs[t] && !error; t++)
		error = open_file(sink, table_defs[t]->name);
	return error;
}

static void end(struct sink *sink, const struct run *run)
{
	for (size_t t = 0; table_defs[t]; t++)
		table_put_csv(&sink->files[t].out, run, table_defs[t]);
}

const struct exporter exporter_csv = {
	.name = "csv",
	.what = "Write all tables in full as CSV files into DIR",
	.value = "DIR",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_FOLDER | USES_FINDINGS | USES_RANKS,
	.analyses = all_analyses,
	.begin = begin,
	.end = end,
};
