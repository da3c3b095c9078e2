/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of ranks that wait for each other, in collectives of NCCL and of MPI.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/json.h"
#include "merge/exporter.h"
#include "merge/ranks/rank_lists.h"
#include "merge/ranks/wait_cause.h"
#include "merge/tables/table.h"

#define CAUSE_SHARE_PART 100 /* text leaves out causes of less than 1/100 of the cost */

static const struct column_def rank_columns[] = {
	COLUMN("collective_count", COUNT, FROM(rank_waits, collective_count), "its collectives"),
	COLUMN("time_ns", NS, FROM(rank_waits, time_ns), "from its first to its last collective"),
	COLUMN("compute_ns", NS, FROM(rank_waits, compute_ns), "of this: in other work"),
	COLUMN("communication_ns", NS, FROM(rank_waits, communication_ns),
	       "of this: only in collectives, without a known wait"),
	COLUMN("wait_ns", NS, FROM(rank_waits, wait_ns), "waits for other ranks"),
	COLUMN("exposed_wait_ns", NS, FROM(rank_waits, exposed_ns),
	       "of these: after all other work of its GPU"),
	COLUMN("idle_ns", NS, FROM(rank_waits, idle_ns), "its GPU had no work"),
	COLUMN("cost_ns", NS, FROM(rank_waits, cost_ns),
	       "other ranks were later because of it, added up", HEAD("costs others", 12)),
	COLUMN("late_count", COUNT, FROM(rank_waits, late_count),
	       "collectives in which it was the last", WIDE("times last", 10, 80)),
	COLUMN("caused_ns", NS, FROM(rank_waits, caused_ns), "waits of others because of it"),
	COLUMN("transfer_ns", NS, FROM(rank_waits, transfer_ns),
	       "in collectives, after the last rank had come"),
	COLUMN("process", TEXT, OTHER, "process", LAST("process")),
	JOB_COLUMNS,
	COLUMN("waiting_percent", NUMBERS, OTHER,
	       "how much of each of 120 equal parts of the job it waited with an idle GPU",
	       IN_JSON),
	COLUMN("late_percent", NUMBERS, OTHER, "the same, for time behind the mean of the others",
	       IN_JSON),
	COLUMN("compute", SHARE, OTHER, "part in other work", HEAD("computes", 10), TEXT_ONLY),
	COLUMN("communication", SHARE, OTHER, "part in collectives only, without a known wait",
	       WIDE("transfers", 9, 60), TEXT_ONLY),
	COLUMN("exposed_wait", SHARE, OTHER, "part in exposed waits", HEAD("waits", 8), TEXT_ONLY),
	COLUMN("idle", SHARE, OTHER, "part without GPU work", WIDE("idle", 8, 60), TEXT_ONLY),
};

static void open_ranks(struct table_rows *rows)
{
	const struct run *run = rows->run;
	const struct rank_waits *ranks = run->collectives_report.ranks;

	table_records(rows, ranks, 0, sizeof(*ranks));
	for (size_t l = 0; ranks && l < run->inputs->count; l++)
		if (ranks[l].collective_count && run->labels[l])
			table_add(rows, l);
}

/* Only in one job does the rank alone identify a process. */
static struct cell cell_process(const struct run *run, size_t log)
{
	struct cell cell = cell_text(run->labels[log]);
	const char *more = strstr(cell.text, " (");

	if (run->collectives_report.job_count < 2 && !strncmp(cell.text, "rank ", 5) && more)
		cell.short_length = (size_t)(more - cell.text);
	return cell;
}

static struct cell cell_bins(struct table_rows *rows, const float bins[RANK_BINS])
{
	struct cell_list list = {0};

	for (size_t b = 0; b < RANK_BINS; b++)
		list_add_number(&list, bins[b] < 1 ? (uint64_t)(100 * bins[b] + 0.5F) : 100);
	return cell_list(rows, &list);
}

static void put_rank(struct table_rows *rows, size_t log, const void *record, struct cells *cells)
{
	const struct rank_waits *rank = record;

	cells_put(cells, cell_process(rows->run, log));
	cells_put_job(cells, &rows->run->inputs->logs[log]);
	cells_put(cells, cell_bins(rows, rank->waiting));
	cells_put(cells, cell_bins(rows, rank->late));
	cells_put(cells, cell_share(rank->compute_ns, rank->time_ns));
	cells_put(cells, cell_share(rank->communication_ns, rank->time_ns));
	cells_put(cells, cell_share(rank->exposed_ns, rank->time_ns));
	cells_put(cells, cell_share(rank->idle_ns, rank->time_ns));
}

const struct table_def table_rank_waits = {
	.name = "rank_waits",
	.json = "collectives.ranks",
	.form = FORM_LIST,
	.title = "Collectives by rank",
	.what = "Time of each rank in and between collectives.",
	HAS_COLUMNS(rank_columns),
	.shows = "compute communication exposed_wait idle cost_ns late_count process",
	.is_whole = true,
	.view = "rank_waits",
	.open = open_ranks,
	.row = put_rank,
};

static const struct column_def cause_columns[] = {
	COLUMN("wait_ns", NS, FROM(wait_cause, wait_ns), "waits of other ranks because of it"),
	COLUMN("cost_ns", NS, FROM(wait_cause, cost_ns),
	       "other ranks were later because of it, added up", HEAD("costs others", 12)),
	COLUMN("process", TEXT, OTHER, "late process"),
	COLUMN("path", PATH, OTHER, "call path; empty if it is unknown"),
	COLUMN("kind", WORD, OTHER, "what takes longer there than in other ranks"),
	COLUMN("where", TEXT, OTHER, "innermost line of your code"),
	JOB_COLUMNS,
	COLUMN("share", SHARE, OTHER, "part of all cost", HEAD("share", 9), TEXT_ONLY),
	COLUMN("place", PLACE, OTHER, "process, line and call path",
	       LAST("late rank, line and call path"), TEXT_ONLY),
};

static void open_causes(struct table_rows *rows)
{
	const struct collectives_report *report = &rows->run->collectives_report;

	table_records(rows, report->causes, report->cause_count, sizeof(*report->causes));
}

/* "rank 3: load_batch (data.py:88)". Where there is no terminal, the path follows. */
static struct cell cell_place(struct table_rows *rows, size_t log, uint32_t node, const char *where)
{
	bool is_known = node != PATH_ROOT;
	struct cell cell = cell_owned(rows, xt_asprintf("%s%s%s", rows->run->labels[log],
							where[0] || !is_known ? ": " : "",
							is_known ? where : CAUSE_UNKNOWN));

	cell.paths = &rows->run->paths;
	cell.node = node;
	return cell;
}

static void put_cause(struct table_rows *rows, size_t index, const void *record,
		      struct cells *cells)
{
	const struct run *run = rows->run;
	const struct wait_cause *cause = record;
	struct cell where = cell_owned(rows, wait_cause_where(&run->paths, cause->node));

	(void)index;
	cells_put(cells, cell_text(run->labels[cause->log]));
	cells_put(cells, cell_path(&run->paths, cause->node));
	cells_put(cells, cell_text(wait_cause_kind(&run->paths, cause->node)));
	cells_put(cells, where);
	cells_put_job(cells, &run->inputs->logs[cause->log]);
	cells_put(cells, cell_share(cause->cost_ns, run->collectives_report.cost_ns));
	cells_put(cells, cell_place(rows, cause->log, cause->node, where.text));
}

#define CAUSE_TABLE(open_rows)                                                                     \
	{                                                                                          \
		.name = "wait_causes", .json = "collectives.causes", .form = FORM_LIST,            \
		.title = "Cost of late ranks, by cause",                                           \
		.what = "Call paths that make other ranks wait, largest cost first.",              \
		HAS_COLUMNS(cause_columns), .shows = "cost_ns share place", .rows_max = 1000,      \
		.view = "wait_cause", .open = open_rows, .row = put_cause                          \
	}

const struct table_def table_wait_causes = CAUSE_TABLE(open_causes);

static const struct column_def mpi_columns[] = {
	COLUMN("wait_ns", NS, FROM(mpi_rank, ns), "in collectives of MPI, by CPU samples",
	       HEAD("in MPI", 12)),
	COLUMN("process", TEXT, OTHER, "process"),
	COLUMN("function", TEXT, OTHER, "function with most of it", OPTIONAL),
	COLUMN("share", SHARE, OTHER, "part of the window", HEAD("share", 9), TEXT_ONLY),
	COLUMN("text", TEXT, OTHER, "process, and where most", LAST("process, and where most"),
	       TEXT_ONLY),
};

static void open_mpi(struct table_rows *rows)
{
	const struct mpi_waits *waits = &rows->run->collectives_report.mpi;

	table_records(rows, waits->ranks, waits->rank_count, sizeof(*waits->ranks));
}

static void put_mpi(struct table_rows *rows, size_t index, const void *record, struct cells *cells)
{
	const struct mpi_waits *waits = &rows->run->collectives_report.mpi;
	const struct mpi_rank *rank = record;
	const char *label = rows->run->labels[rank->log];

	(void)index;
	cells_put(cells, cell_text(label));
	cells_put(cells, cell_text(rank->function));
	cells_put(cells, cell_share(rank->ns, (uint64_t)(waits->until_ns - waits->from_ns)));
	cells_put(cells, cell_owned(rows, rank->function ? xt_asprintf("%s: waits in %s", label,
								       rank->function)
							 : xt_strdup(label)));
}

const struct table_def table_mpi = {
	.name = "mpi",
	.json = "mpi.ranks",
	.form = FORM_LIST,
	.title = "Collectives of MPI",
	.what = "Time of each rank in collectives of MPI.",
	HAS_COLUMNS(mpi_columns),
	.shows = "wait_ns share text",
	.is_whole = true,
	.open = open_mpi,
	.row = put_mpi,
};
