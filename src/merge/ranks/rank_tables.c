/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of ranks that wait for each other, in collectives of NCCL and of MPI.
 */
#include "merge/exporter.h"
#include "merge/tables/table.h"

enum { COLLECTIVES, TIME, COMPUTES, TRANSFERS, WAITS, EXPOSED, IDLE, COST, LATE, RANK };

static const struct column_def rank_columns[] = {
	[COLLECTIVES] = {"collective_count", CELL_COUNT, COLUMN_DATA, "its collectives"},
	[TIME] = {"time_ns", CELL_NS, COLUMN_DATA, "from its first to its last collective"},
	[COMPUTES] = {"compute_ns", CELL_NS, COLUMN_DATA, "of this: in other work"},
	[TRANSFERS] = {"communication_ns", CELL_NS, COLUMN_DATA,
		       "of this: only in collectives, without waiting"},
	[WAITS] = {"wait_ns", CELL_NS, COLUMN_DATA, "waits for other ranks"},
	[EXPOSED] = {"exposed_wait_ns", CELL_NS, COLUMN_DATA,
		     "of these: after all other work of its GPU"},
	[IDLE] = {"idle_ns", CELL_NS, COLUMN_DATA, "its GPU had no work"},
	[COST] = {"cost_ns", CELL_NS, COLUMN_DATA, "other ranks were later because of it"},
	[LATE] = {"late_count", CELL_COUNT, COLUMN_DATA, "collectives in which it was the last"},
	[RANK] = {"process", CELL_TEXT, COLUMN_DATA, "process"},
};

static void open_ranks(struct table_rows *rows)
{
	const struct run *run = rows->run;

	for (size_t l = 0; run->collectives_report.ranks && l < run->inputs->count; l++)
		if (run->collectives_report.ranks[l].collective_count && run->labels[l])
			table_add(rows, l);
}

static void put_rank(struct table_rows *rows, size_t r, struct cell *cells)
{
	size_t log = table_index(rows, r);
	const struct rank_waits *rank = &rows->run->collectives_report.ranks[log];

	cells[COLLECTIVES].number = rank->collective_count;
	cells[TIME].number = rank->time_ns;
	cells[COMPUTES].number = rank->compute_ns;
	cells[TRANSFERS].number = rank->communication_ns;
	cells[WAITS].number = rank->wait_ns;
	cells[EXPOSED].number = rank->exposed_ns;
	cells[IDLE].number = rank->idle_ns;
	cells[COST].number = rank->cost_ns;
	cells[LATE].number = rank->late_count;
	cells[RANK] = cell_text(rows->run->labels[log]);
}

const struct table_def table_rank_waits = {
	.name = "rank_waits",
	.title = "Collectives by rank",
	.what = "Time of each rank in and between collectives.",
	HAS_COLUMNS(rank_columns),
	.view = "rank_waits",
	.open = open_ranks,
	.cells = put_rank,
};

enum { CAUSE_WAIT, CAUSE_COST, CAUSE_PROCESS, CAUSE_PATH };

static const struct column_def cause_columns[] = {
	[CAUSE_WAIT] = {"wait_ns", CELL_NS, COLUMN_DATA, "waits of other ranks because of it"},
	[CAUSE_COST] = {"cost_ns", CELL_NS, COLUMN_DATA, "other ranks were later because of it"},
	[CAUSE_PROCESS] = {"process", CELL_TEXT, COLUMN_DATA, "late process"},
	[CAUSE_PATH] = {"path", CELL_PATH, COLUMN_DATA, "call path; empty if it is unknown"},
};

static void open_causes(struct table_rows *rows)
{
	rows->count = rows->run->collectives_report.cause_count;
}

static void put_cause(struct table_rows *rows, size_t r, struct cell *cells)
{
	const struct wait_cause *cause = &rows->run->collectives_report.causes[r];

	cells[CAUSE_WAIT].number = cause->wait_ns;
	cells[CAUSE_COST].number = cause->cost_ns;
	cells[CAUSE_PROCESS] = cell_text(rows->run->labels[cause->log]);
	cells[CAUSE_PATH] = cell_path(&rows->run->paths, cause->node);
}

const struct table_def table_wait_causes = {
	.name = "wait_causes",
	.title = "Cost of late ranks, by cause",
	.what = "Call paths that make other ranks wait, largest cost first.",
	HAS_COLUMNS(cause_columns),
	.view = "wait_cause",
	.open = open_causes,
	.cells = put_cause,
};

enum { MPI_WAIT, MPI_PROCESS, MPI_FUNCTION };

static const struct column_def mpi_columns[] = {
	[MPI_WAIT] = {"wait_ns", CELL_NS, COLUMN_DATA, "in collectives of MPI, by CPU samples"},
	[MPI_PROCESS] = {"process", CELL_TEXT, COLUMN_DATA, "process"},
	[MPI_FUNCTION] = {"function", CELL_TEXT, COLUMN_DATA, "function with most of it"},
};

static void open_mpi(struct table_rows *rows)
{
	rows->count = rows->run->collectives_report.mpi.rank_count;
}

static void put_mpi(struct table_rows *rows, size_t r, struct cell *cells)
{
	const struct mpi_rank *rank = &rows->run->collectives_report.mpi.ranks[r];

	cells[MPI_WAIT].number = rank->ns;
	cells[MPI_PROCESS] = cell_text(rows->run->labels[rank->log]);
	cells[MPI_FUNCTION] = rank->function ? cell_text(rank->function) : CELL_ABSENT;
}

const struct table_def table_mpi = {
	.name = "mpi",
	.title = "Collectives of MPI",
	.what = "Time of each rank in collectives of MPI.",
	HAS_COLUMNS(mpi_columns),
	.open = open_mpi,
	.cells = put_mpi,
};
