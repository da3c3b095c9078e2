/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of ranks that wait for each other, in collectives of NCCL and of MPI.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "base/json.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define CAUSE_SHARE_PART 100 /* text leaves out causes of less than 1/100 of the cost */

OPEN_LIST(open_causes, rows->run->compared->report.causes)
OPEN_LIST(open_communicators, rows->run->compared->report.communicators)
OPEN_LIST(open_groups, rows->run->compared->report.groups)
OPEN_LIST(open_clocks, rows->run->compared->report.clocks)
OPEN_LIST(open_mismatches, rows->run->compared->report.mismatches)
OPEN_LIST(open_unfinished, rows->run->compared->report.unfinished)
OPEN_LIST(open_duplicates, rows->run->compared->report.communicators.duplicates)

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
	const struct rank_waits *ranks = run->compared->report.ranks;

	table_records(rows, ranks, 0);
	for (size_t l = 0; ranks && l < run->inputs->count; l++)
		if (ranks[l].collective_count && run->labels[l])
			table_add(rows, l);
}

/* Only in one job does the rank alone identify a process. */
static struct cell cell_process(const struct run *run, size_t log)
{
	struct cell cell = cell_text(run->labels[log]);
	const char *more = strstr(cell.text, " (");

	if (run->compared->report.job_count < 2 && !strncmp(cell.text, "rank ", 5) && more)
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

static void put_rank(struct table_rows *rows, struct cells *cells)
{
	const struct rank_waits *rank = rows->record;

	cells_put(cells, cell_process(rows->run, rows->index));
	cells_put_job(cells, &rows->run->inputs->logs[rows->index]);
	cells_put(cells, cell_bins(rows, rank->waiting));
	cells_put(cells, cell_bins(rows, rank->late));
	cells_put(cells, cell_share(rank->compute_ns, rank->time_ns));
	cells_put(cells, cell_share(rank->communication_ns, rank->time_ns));
	cells_put(cells, cell_share(rank->exposed_ns, rank->time_ns));
	cells_put(cells, cell_share(rank->idle_ns, rank->time_ns));
}

const struct table_def table_rank_waits = {
	.name = "rank_waits",
	.json.name = "collectives.ranks",
	.json.form = FORM_LIST,
	.title = "Collectives by rank",
	.what = "Time of each rank in and between collectives.",
	HAS_COLUMNS(rank_columns),
	.shows = "compute communication exposed_wait idle cost_ns late_count process",
	.is_whole = true,
	.view = "rank_waits",
	.open = open_ranks,
	.row = put_rank,
};

/* A row of a table for text, and the time that it is sorted by. */
struct sorted_row {
	size_t index;
	uint64_t ns;
};

/* Longest times first; otherwise in the order of the list. */
COMPARE_BY(compare_rows, struct sorted_row, DOWN(ns) UP(index))

/* Chooses the rows in this order. Sorts and frees it. */
static void choose_sorted(struct table_rows *rows, struct sorted_row *order, size_t count)
{
	qsort(order, count, sizeof(*order), compare_rows);
	rows->count = 0;
	for (size_t r = 0; r < count; r++)
		table_add(rows, order[r].index);
	free(order);
}

static void open_costly_ranks(struct table_rows *rows)
{
	const struct rank_waits *ranks = rows->run->compared->report.ranks;
	struct sorted_row *order;

	open_ranks(rows);
	order = xt_calloc(rows->count + 1, sizeof(*order));
	for (size_t r = 0; r < rows->count; r++)
		order[r] = (struct sorted_row){rows->chosen.list[r],
					       ranks[rows->chosen.list[r]].cost_ns};
	choose_sorted(rows, order, rows->count);
}

const struct table_def text_costly_ranks = {
	.name = "rank_waits",
	.title = "Ranks",
	HAS_COLUMNS(rank_columns),
	.shows = "process compute communication exposed_wait idle cost_ns",
	.open = open_costly_ranks,
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

static void open_large_causes(struct table_rows *rows)
{
	const struct collectives_report *report = &rows->run->compared->report;
	size_t count = 0;

	open_causes(rows);
	while (count < rows->count &&
	       report->causes.list[count].cost_ns > report->times.cost_ns / CAUSE_SHARE_PART)
		count++;
	if (report->verdict.kind == VERDICT_NONE || report->verdict.kind == VERDICT_LINK)
		count = 0;
	rows->count = count;
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

static void put_cause(struct table_rows *rows, struct cells *cells)
{
	const struct run *run = rows->run;
	const struct wait_cause *cause = rows->record;
	struct cell where = cell_owned(rows, wait_cause_where(&run->paths, cause->node));

	cells_put(cells, cell_text(run->labels[cause->log]));
	cells_put(cells, cell_path(&run->paths, cause->node));
	cells_put(cells, cell_text(wait_cause_kind(&run->paths, cause->node)));
	cells_put(cells, where);
	cells_put_job(cells, &run->inputs->logs[cause->log]);
	cells_put(cells, cell_share(cause->cost_ns, run->compared->report.times.cost_ns));
	cells_put(cells, cell_place(rows, cause->log, cause->node, where.text));
}

#define CAUSE_TABLE(open_rows)                                                                     \
	{                                                                                          \
		.name = "wait_causes", .json.name = "collectives.causes", .json.form = FORM_LIST,  \
		.title = "Cost of late ranks, by cause",                                           \
		.what = "Call paths that make other ranks wait, largest cost first.",              \
		HAS_COLUMNS(cause_columns), .shows = "cost_ns share place", .json.rows_max = 1000, \
		.view = "wait_cause", .open = open_rows, .row = put_cause                          \
	}

const struct table_def table_wait_causes = CAUSE_TABLE(open_causes);
const struct table_def text_large_causes = CAUSE_TABLE(open_large_causes);

static const struct column_def spread_columns[] = {
	COLUMN("process", TEXT, OTHER, "process with the longest time"),
	COLUMN("process_count", COUNT, FROM(path_spread, count), "processes that have the path"),
	COLUMN("mean_ns", NS, OTHER, "their mean GPU time", HEAD("mean", 12)),
	COLUMN("min_ns", NS, FROM(path_spread, min_ns), "shortest time", WIDE("shortest", 12, 80)),
	COLUMN("max_ns", NS, FROM(path_spread, max_ns), "longest time", HEAD("longest", 12)),
	COLUMN("where", TEXT, OTHER, "innermost line of your code"),
	COLUMN("path", PATH, OTHER, "call path"),
	COLUMN("place", PLACE, OTHER, "process, line and call path",
	       LAST("longest in, line and call path"), TEXT_ONLY),
};

static void open_spread(struct table_rows *rows)
{
	const struct rank_spread *spread = &rows->run->sums->spread;

	table_records(rows, spread->list, 0);
	for (size_t r = 0; r < spread->row_count; r++)
		table_add(rows, spread->rows[r]);
}

static void put_spread(struct table_rows *rows, struct cells *cells)
{
	const struct path_spread *path = rows->record;
	const struct paths *paths = &rows->run->paths;
	uint32_t node = (uint32_t)rows->index;
	struct cell where = cell_owned(rows, wait_cause_where(paths, node));

	cells_put(cells, cell_text(rows->run->labels[path->max_log]));
	cells_put(cells, cell_number(path_spread_mean_ns(path)));
	cells_put(cells, where);
	cells_put(cells, cell_path(paths, node));
	cells_put(cells, cell_place(rows, path->max_log, node, where.text));
}

const struct table_def table_spread = {
	.name = "spread",
	.json.name = "collectives.spread",
	.json.form = FORM_LIST,
	.title = "GPU time that differs between ranks",
	.what = "Call paths whose GPU time differs between ranks, without collectives, largest "
		"difference first.",
	HAS_COLUMNS(spread_columns),
	.shows = "mean_ns min_ns max_ns place",
	.json.rows_max = 100,
	.open = open_spread,
	.row = put_spread,
};

static const struct column_def communicator_columns[] = {
	COLUMN("communicator", TEXT, OTHER, "number of NCCL, or stream"),
	COLUMN("log_count", COUNT, FROM(communicator, members.count), "ranks that have a log"),
	COLUMN("ranks", TEXT, OTHER, "ranks of the job; empty if unknown"),
	COLUMN("wait_ns", NS, OTHER, "sum over ranks and collectives, also beside other work",
	       HEAD("waits", 12)),
	COLUMN("operations", TEXT, OTHER, "calls of the rank that has most of them", FLAT),
	COLUMN("text", TEXT, OTHER, "ranks and calls of each rank",
	       LAST("ranks and calls of each rank"), TEXT_ONLY),
};

struct communicator_sums {
	uint64_t counts[COLLECTIVE_OPERATIONS]; /* calls of the rank that has most of them */
	uint64_t wait_ns;			/* of all members */
};

static struct communicator_sums communicator_sums(const struct communicator *communicator)
{
	const struct comm_member *most = communicator->members.list;
	struct communicator_sums sums = {0};

	for (size_t m = 1; m < communicator->members.count; m++)
		if (communicator->members.list[m].count > most->count)
			most = &communicator->members.list[m];
	for (size_t i = 0; i < most->log->count; i++)
		if (&most->log->members.list[most->log->list[i].member] == most->member)
			sums.counts[most->log->list[i].operation]++;
	for (size_t i = 0; i < communicator->instance_count; i++)
		sums.wait_ns += (uint64_t)communicator->arrivals[i].wait_ns;
	return sums;
}

static void open_sorted_communicators(struct table_rows *rows)
{
	const struct communicators *list = &rows->run->compared->report.communicators;
	struct sorted_row *order = xt_calloc(list->count + 1, sizeof(*order));

	for (size_t c = 0; c < list->count; c++)
		order[c] = (struct sorted_row){c, communicator_sums(&list->list[c]).wait_ns};
	open_communicators(rows);
	choose_sorted(rows, order, list->count);
}

static struct cell cell_communicator(struct table_rows *rows, const struct communicator *of)
{
	char name[32];

	communicator_name(of, name, sizeof(name));
	return cell_owned(rows, xt_strdup(name));
}

static void put_communicator(struct table_rows *rows, struct cells *cells)
{
	const struct communicator *communicator = rows->record;
	struct communicator_sums sums = communicator_sums(communicator);
	char *ranks = communicator_ranks_text(rows->run, communicator), *calls;
	struct cell text;
	size_t length;
	FILE *stream = xt_open_memstream(&calls, &length);

	for (size_t o = 0, listed = 0; o < COLLECTIVE_OPERATIONS; o++)
		if (sums.counts[o])
			fprintf(stream, "%s%s %" PRIu64, listed++ ? ", " : "",
				collective_operation_names[o], sums.counts[o]);
	xt_close_memstream(stream);
	cells_put(cells, cell_communicator(rows, communicator));
	cells_put(cells, cell_owned(rows, ranks));
	cells_put(cells, cell_number(sums.wait_ns));
	cells_put(cells, cell_owned(rows, calls));
	text = cell_owned(rows, xt_asprintf("%s%s%s", ranks[0] ? ranks : "unknown ranks",
					    calls[0] ? "; " : "", calls));
	text.is_wrapped = true;
	cells_put(cells, text);
}

static void put_operations(struct json *json, const struct table_rows *rows)
{
	struct communicator_sums sums = communicator_sums(rows->record);

	json_begin_object(json, "operations");
	for (size_t o = 0; o < COLLECTIVE_OPERATIONS; o++)
		if (sums.counts[o])
			json_u64(json, collective_operation_names[o], sums.counts[o]);
	json_end_object(json);
}

#define COMMUNICATOR_TABLE(open_rows)                                                              \
	{                                                                                          \
		.name = "communicators", .json.name = "collectives.communicators",                 \
		.json.form = FORM_LIST, .title = "Communicators",                                  \
		.what = "Groups of ranks that share collectives.",                                 \
		HAS_COLUMNS(communicator_columns), .shows = "wait_ns text",                        \
		.view = "communicator", .open = open_rows, .row = put_communicator,                \
		.json.more = put_operations                                                        \
	}

const struct table_def table_communicators = COMMUNICATOR_TABLE(open_communicators);
const struct table_def text_sorted_communicators = COMMUNICATOR_TABLE(open_sorted_communicators);

static const struct column_def group_columns[] = {
	COLUMN("operation", WORD, OTHER, "operation"),
	COLUMN("communicator", TEXT, OTHER, "communicator"),
	COLUMN("ranks", COUNT, OTHER, "its ranks that have a log"),
	COLUMN("bytes", BYTES, FROM(collective_group, bytes),
	       "as NCCL states it; 0: unknown. Of `AllGather` and `ReduceScatter`, the part of "
	       "one rank"),
	COLUMN("count", COUNT, FROM(collective_group, count), "such collectives"),
	COLUMN("wait_ns", NS, FROM(collective_group, wait_ns), "waits of all ranks"),
	COLUMN("transfer_ns", NS, FROM(collective_group, transfer_ns),
	       "from the last arrival to the first end, median"),
	COLUMN("slow_ns", NS, FROM(collective_group, slow_ns),
	       "what transfers took beyond comparable ones, added up"),
	COLUMN("algorithm_bytes_per_second", BYTES, OTHER,
	       "algorithm bandwidth, as nccl-tests defines it", OPTIONAL),
	COLUMN("bus_bytes_per_second", BYTES, OTHER, "bus bandwidth, as nccl-tests defines it",
	       OPTIONAL),
};

/* Factors of algorithm and bus bandwidth, as nccl-tests defines them, for n ranks. */
static double algorithm_bytes(const struct collective_group *group, double n)
{
	bool is_part = group->operation == COLLECTIVE_ALL_GATHER ||
		       group->operation == COLLECTIVE_REDUCE_SCATTER;

	return (double)group->bytes * (is_part ? n : 1);
}

static double bus_factor(const struct collective_group *group, double n)
{
	switch (group->operation) {
	case COLLECTIVE_ALL_REDUCE:
		return 2 * (n - 1) / n;
	case COLLECTIVE_ALL_GATHER:
	case COLLECTIVE_REDUCE_SCATTER:
	case COLLECTIVE_ALL_TO_ALL:
		return (n - 1) / n;
	default:
		return 1;
	}
}

static void put_group(struct table_rows *rows, struct cells *cells)
{
	const struct collective_group *group = rows->record;
	const struct communicator *communicator =
		&rows->run->compared->report.communicators.list[group->communicator];
	double n = (double)communicator->members.count, bytes_per_second = 0;
	bool is_known = group->bytes && group->transfer_ns;

	if (is_known)
		bytes_per_second = algorithm_bytes(group, n) / (double)group->transfer_ns * 1e9;
	cells_put(cells, cell_text(collective_operation_names[group->operation]));
	cells_put(cells, cell_communicator(rows, communicator));
	cells_put(cells, cell_number(communicator->members.count));
	cells_put(cells, is_known ? cell_number((uint64_t)bytes_per_second) : CELL_ABSENT);
	cells_put(cells, is_known ? cell_number((uint64_t)(bytes_per_second * bus_factor(group, n)))
				  : CELL_ABSENT);
}

const struct table_def table_collective_groups = {
	.name = "collective_groups",
	.json.name = "collectives.groups",
	.json.form = FORM_LIST,
	.title = "Collectives",
	.what = "Collectives by communicator, operation and size.",
	HAS_COLUMNS(group_columns),
	.view = "collective_bandwidth",
	.open = open_groups,
	.row = put_group,
};

static const struct column_def clock_columns[] = {
	COLUMN("host", TEXT, OTHER, "host"),
	COLUMN("is_aligned", FLAG, OTHER, "whether it shares collectives with an earlier host"),
	COLUMN("reference", TEXT, OTHER, "first host that it shares collectives with"),
	COLUMN("at_realtime_ns", MOMENT, OTHER, "time of the offset"),
	COLUMN("offset_ns", MOMENT, OTHER, "how far the clock is ahead"),
	COLUMN("drift_ppm", REAL, OTHER, "how fast that grows"),
	COLUMN("error_ns", NS, OTHER, "the offset is right to this extent", OPTIONAL),
	COLUMN("bound_count", COUNT, FROM(rank_clock, bound_count), "collectives that prove it"),
};

static void put_clock(struct table_rows *rows, struct cells *cells)
{
	const struct rank_clocks *clocks = &rows->run->compared->report.clocks;
	const struct rank_clock *clock = rows->record;
	bool is_known = rank_clock_is_known(clocks, rows->index);

	cells_put(cells, cell_text(clock->log->host));
	cells_put(cells, cell_number(is_known));
	cells_put(cells, cell_text(clocks->list[clock->reference].log->host));
	cells_put(cells, cell_moment(rows->run->inputs->origin_ns + (int64_t)clock->at_ns));
	cells_put(cells, cell_moment(-(int64_t)clock->offset_ns));
	cells_put(cells, (struct cell){.real = 0 - clock->drift * 1e6}); /* never -0 */
	cells_put(cells, is_known ? cell_number((uint64_t)clock->error_ns + 1) : CELL_ABSENT);
}

const struct table_def table_clocks = {
	.name = "clocks",
	.json.name = "collectives.clocks",
	.json.form = FORM_LIST,
	.title = "Clocks of hosts",
	.what = "Clocks of the hosts, compared by collectives.",
	HAS_COLUMNS(clock_columns),
	.view = "host_clock",
	.open = open_clocks,
	.row = put_clock,
};

static const struct column_def mismatch_columns[] = {
	COLUMN("communicator", TEXT, OTHER, "communicator", HEAD("communicator", 20)),
	COLUMN("index", CODE, FROM(collective_mismatch, number), "number in the communicator",
	       HEAD("number", 8)),
	COLUMN("what", WORD, OTHER, "what differs: operation or bytes", HEAD("differs", 10)),
	COLUMN("processes", TEXTS, OTHER, "its ranks", LAST("ranks")),
	COLUMN("values", VALUES, OTHER, "the value in each of them"),
};

static void put_mismatch(struct table_rows *rows, struct cells *cells)
{
	const struct collective_mismatch *row = rows->record;
	const struct communicator *communicator =
		&rows->run->compared->report.communicators.list[row->communicator];
	bool is_size = row->what == MISMATCH_BYTES;
	struct cell_list processes = {0}, values = {.are_numbers = is_size};

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];
		const struct rank_collective *item = comm_item(member, row->number);

		if (!item)
			continue;
		list_add(&processes, rows->run->labels[member->log->log]);
		if (is_size)
			list_add_number(&values, item->bytes);
		else
			list_add(&values, collective_operation_names[item->operation]);
	}
	cells_put(cells, cell_communicator(rows, communicator));
	cells_put(cells, cell_text(is_size ? "bytes" : "operation"));
	cells_put(cells, cell_list(rows, &processes));
	cells_put(cells, cell_list(rows, &values));
}

const struct table_def table_mismatches = {
	.name = "mismatches",
	.json.name = "collectives.mismatches",
	.json.form = FORM_LIST,
	.title = "Collectives that differ between ranks",
	.what = "Collectives in which ranks differ. Such ranks hang or exchange wrong data.",
	HAS_COLUMNS(mismatch_columns),
	.shows = "communicator index what processes",
	.open = open_mismatches,
	.row = put_mismatch,
};

static const struct column_def unfinished_columns[] = {
	COLUMN("communicator", TEXT, OTHER, "communicator", HEAD("communicator", 20)),
	COLUMN("index", CODE, FROM(unfinished_collective, number), "number in the communicator",
	       HEAD("number", 8)),
	COLUMN("operation", WORD, OTHER, "operation", HEAD("operation", 14)),
	COLUMN("present", TEXTS, OTHER, "processes that entered it"),
	COLUMN("absent", TEXTS, OTHER, "those that did not", LAST("not there")),
};

static void put_unfinished(struct table_rows *rows, struct cells *cells)
{
	const struct unfinished_collective *row = rows->record;
	const struct communicator *communicator =
		&rows->run->compared->report.communicators.list[row->communicator];
	struct cell_list present = {0}, absent = {0};

	for (size_t m = 0; m < communicator->members.count; m++)
		list_add(comm_member_reach(communicator, m) > row->number ? &present : &absent,
			 rows->run->labels[communicator->members.list[m].log->log]);
	cells_put(cells, cell_communicator(rows, communicator));
	cells_put(cells, cell_text(collective_operation_names[row->operation]));
	cells_put(cells, cell_list(rows, &present));
	cells_put(cells, cell_list(rows, &absent));
}

const struct table_def table_unfinished = {
	.name = "unfinished",
	.json.name = "collectives.unfinished",
	.json.form = FORM_LIST,
	.title = "Collectives that never finished",
	.what = "Collectives that never ended, earliest first.",
	HAS_COLUMNS(unfinished_columns),
	.shows = "communicator index operation absent",
	.open = open_unfinished,
	.row = put_unfinished,
};

static const struct column_def duplicate_columns[] = {
	COLUMN("process", TEXT, OTHER, "process that is left out", HEAD("left out", 30)),
	COLUMN("other", TEXT, OTHER, "process with the same rank", LAST("same rank as")),
};

static void put_duplicate(struct table_rows *rows, struct cells *cells)
{
	const struct duplicate_rank *row = rows->record;

	cells_put(cells, cell_text(rows->run->labels[row->log]));
	cells_put(cells, cell_text(rows->run->labels[row->other]));
}

const struct table_def table_duplicates = {
	.name = "duplicates",
	.json.name = "collectives.duplicates",
	.json.form = FORM_TEXTS,
	.title = "Logs of the same rank",
	.what = "Logs that are left out because another has the same rank.",
	HAS_COLUMNS(duplicate_columns),
	.shows = "process other",
	.open = open_duplicates,
	.row = put_duplicate,
};

static const struct column_def mpi_columns[] = {
	COLUMN("wait_ns", NS, FROM(mpi_rank, ns), "in collectives of MPI, by CPU samples",
	       HEAD("in MPI", 12)),
	COLUMN("process", TEXT, OTHER, "process", LAST("process")),
	COLUMN("function", TEXT, OTHER, "function with most of it", OPTIONAL),
	COLUMN("share", SHARE, OTHER, "part of the window", HEAD("share", 9), TEXT_ONLY),
	COLUMN("text", TEXT, OTHER, "process, and where most", LAST("process, and where most"),
	       TEXT_ONLY),
};

static void open_mpi(struct table_rows *rows)
{
	const struct mpi_waits *waits = &rows->run->compared->report.mpi;

	table_records(rows, waits->ranks, waits->rank_count);
}

static void put_mpi(struct table_rows *rows, struct cells *cells)
{
	const struct mpi_waits *waits = &rows->run->compared->report.mpi;
	const struct mpi_rank *rank = rows->record;
	const char *label = rows->run->labels[rank->log];

	cells_put(cells, cell_text(label));
	cells_put(cells, cell_text(rank->function));
	cells_put(cells, cell_share(rank->ns, (uint64_t)(waits->until_ns - waits->from_ns)));
	cells_put(cells, cell_owned(rows, rank->function ? xt_asprintf("%s: waits in %s", label,
								       rank->function)
							 : xt_strdup(label)));
}

const struct table_def table_mpi = {
	.name = "mpi",
	.json.name = "mpi.ranks",
	.json.form = FORM_LIST,
	.title = "Collectives of MPI",
	.what = "Time of each rank in collectives of MPI.",
	HAS_COLUMNS(mpi_columns),
	.shows = "wait_ns share text",
	.is_whole = true,
	.open = open_mpi,
	.row = put_mpi,
};

const struct table_def text_mpi_ranks = {
	.name = "mpi",
	.title = "Ranks in collectives of MPI",
	HAS_COLUMNS(mpi_columns),
	.shows = "process wait_ns",
	.open = open_mpi,
	.row = put_mpi,
};
