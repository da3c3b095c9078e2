/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_mpi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary/summary_text.h"
#include "merge/ranks/wait_cause.h"

static const struct column columns[] = {{"in MPI", 12, 0, false}, {"share", 9, 0, false}};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static uint64_t window_ns(const struct mpi_waits *waits)
{
	return (uint64_t)(waits->until_ns - waits->from_ns);
}

static int put_rank(struct output *out, const struct run *run, const struct mpi_rank *rank)
{
	const struct mpi_waits *waits = &run->collectives_report.mpi;
	char time[TIME_BYTES], share[SHARE_BYTES], *text, *clean;
	const char *figures[COLUMNS] = {time, share};

	format_time(time, rank->ns);
	format_share(share, rank->ns, window_ns(waits));
	if (asprintf(&text, "%s%s%s", run->labels[rank->log], rank->function ? ": waits in " : "",
		     rank->function ? rank->function : "") < 0)
		return -ENOMEM;
	clean = text_clean_copy(text);
	free(text);
	if (!clean)
		return -ENOMEM;
	put_figures(out, columns, COLUMNS, figures);
	put_cell(out, clean, strlen(clean));
	output_text(out, "\n", 1);
	free(clean);
	return 0;
}

int summary_put_mpi(struct sink *sink, const struct run *run)
{
	const struct mpi_waits *waits = &run->collectives_report.mpi;
	char *text, *clean;
	int error = 0;

	if (!waits->rank_count)
		return 0;
	text = mpi_waits_text(run, waits);
	clean = text ? text_clean_copy(text) : NULL;
	free(text);
	if (!clean)
		return -ENOMEM;
	put_title(&sink->out, "Collectives of MPI", "");
	put_note(&sink->out, clean);
	free(clean);
	put_heads(&sink->out, columns, COLUMNS, "process, and where most");
	for (size_t r = 0; r < waits->rank_count && !error; r++)
		error = put_rank(&sink->out, run, &waits->ranks[r]);
	return error;
}

static int put_verdict(struct json *json, const struct run *run, const struct mpi_waits *waits)
{
	char *text = mpi_waits_text(run, waits), *where = NULL;
	bool is_known = waits->late != SIZE_MAX;

	if (is_known)
		where = wait_cause_where(&run->paths, waits->node);
	if (!text || (is_known && !where)) {
		free(text);
		free(where);
		return -ENOMEM;
	}
	json_begin_object(json, "verdict");
	json_string(json, "kind", is_known ? "rank" : "unknown");
	if (is_known) {
		json_string(json, "process", run->labels[waits->ranks[waits->late].log]);
		json_u64(json, "cost_ns", waits->cost_ns);
		json_string(json, "where", where);
		json_u64(json, "where_ns", waits->node_ns);
	}
	json_string(json, "text", text);
	json_end_object(json);
	free(text);
	free(where);
	return 0;
}

int put_mpi_json(struct json *json, const struct run *run)
{
	const struct mpi_waits *waits = &run->collectives_report.mpi;
	int error;

	if (!waits->rank_count)
		return 0;
	json_begin_object(json, "mpi");
	json_u64(json, "period_ns", waits->period_ns);
	json_u64(json, "window_ns", window_ns(waits));
	error = put_verdict(json, run, waits);
	json_begin_array(json, "ranks");
	for (size_t r = 0; r < waits->rank_count; r++) {
		const struct mpi_rank *rank = &waits->ranks[r];

		json_begin_object(json, NULL);
		json_string(json, "process", run->labels[rank->log]);
		json_u64(json, "wait_ns", rank->ns);
		if (rank->function)
			json_string(json, "function", rank->function);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	return error;
}
