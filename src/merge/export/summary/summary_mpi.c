/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_mpi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"

static uint64_t window_ns(const struct mpi_waits *waits)
{
	return (uint64_t)(waits->until_ns - waits->from_ns);
}

int summary_put_mpi(struct sink *sink, const struct run *run)
{
	const struct mpi_waits *waits = &run->compared->report.mpi;
	char *text, *clean;

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
	return table_put_text(sink, run, &table_mpi, false);
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
	const struct mpi_waits *waits = &run->compared->report.mpi;
	int error;

	if (!waits->rank_count)
		return 0;
	json_begin_object(json, "mpi");
	json_u64(json, "period_ns", waits->period_ns);
	json_u64(json, "window_ns", window_ns(waits));
	error = put_verdict(json, run, waits);
	if (!error)
		error = table_put_json(json, run, &table_mpi);
	json_end_object(json);
	return error;
}
