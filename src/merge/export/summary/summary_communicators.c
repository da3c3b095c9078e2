/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_communicators.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "merge/base/text.h"
#include "merge/export/summary/summary_text.h"
#include "merge/ranks/arrivals.h"
#include "merge/ranks/rank_lists.h"

static const struct column columns[] = {{"waits", 12, 0, false}};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct row {
	const struct communicator *communicator;
	struct communicator_sums sums;
};

/* "0-3; AllReduce 120, SendRecv 8". Freed by the caller; NULL: out of memory. */
static char *row_text(const struct run *run, const struct row *row)
{
	char *ranks = communicator_ranks_text(run, row->communicator), *text = NULL;

	if (ranks && asprintf(&text, "%s", ranks[0] ? ranks : "unknown ranks") < 0)
		text = NULL;
	free(ranks);
	for (size_t o = 0, listed = 0; o < COLLECTIVE_OPERATIONS && text; o++) {
		char *longer;

		if (!row->sums.counts[o])
			continue;
		if (asprintf(&longer, "%s%s %s %llu", text, listed++ ? "," : ";",
			     collective_operation_names[o],
			     (unsigned long long)row->sums.counts[o]) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	return text;
}

static int put_row(struct output *out, const struct run *run, const struct row *row)
{
	char time[TIME_BYTES], *text = row_text(run, row);
	const char *figures[COLUMNS] = {time};

	if (!text)
		return -ENOMEM;
	format_time(time, row->sums.wait_ns);
	put_figures(out, columns, COLUMNS, figures);
	put_words(out, text, 0, column_of(out), out->columns ? out->columns : SIZE_MAX);
	output_text(out, "\n", 1);
	free(text);
	return 0;
}

/* Longest waits first; otherwise in the order of the list. */
COMPARE_BY(compare_rows, struct row, DOWN(sums.wait_ns) UP(communicator))

int summary_put_communicators(struct sink *sink, const struct run *run)
{
	const struct communicators *communicators = &run->collectives_report.communicators;
	size_t count = communicators->count, shown = rows_to_show(count, sink->settings);
	struct row *rows;
	int error = 0;

	if (!count)
		return 0;
	rows = malloc(count * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (size_t c = 0; c < count; c++)
		rows[c] = (struct row){&communicators->list[c],
				       communicator_sums(&communicators->list[c])};
	qsort(rows, count, sizeof(*rows), compare_rows);
	put_top_title(&sink->out, "Communicators", shown, count);
	put_heads(&sink->out, columns, COLUMNS, "ranks and calls of each rank");
	for (size_t r = 0; r < shown && !error; r++)
		error = put_row(&sink->out, run, &rows[r]);
	free(rows);
	return error;
}

void put_communicator_json(struct json *json, const struct communicator *communicator)
{
	char name[32];

	communicator_name(communicator, name, sizeof(name));
	json_string(json, "communicator", name);
}

int put_communicators_json(struct json *json, const struct run *run)
{
	const struct communicators *communicators = &run->collectives_report.communicators;

	json_begin_array(json, "communicators");
	for (size_t c = 0; c < communicators->count; c++) {
		const struct communicator *communicator = &communicators->list[c];
		struct communicator_sums sums = communicator_sums(communicator);
		char *ranks = communicator_ranks_text(run, communicator);

		if (!ranks)
			return -ENOMEM;
		json_begin_object(json, NULL);
		put_communicator_json(json, communicator);
		json_u64(json, "log_count", communicator->member_count);
		json_string(json, "ranks", ranks);
		json_u64(json, "wait_ns", sums.wait_ns);
		json_begin_object(json, "operations");
		for (size_t o = 0; o < COLLECTIVE_OPERATIONS; o++)
			if (sums.counts[o])
				json_u64(json, collective_operation_names[o], sums.counts[o]);
		json_end_object(json);
		json_end_object(json);
		free(ranks);
	}
	json_end_array(json);
	return 0;
}
