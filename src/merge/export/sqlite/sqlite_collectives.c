/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of all ranks, who waited there and why.
 *
 * Sums over the rows are those of the summary, to the nanosecond: both round the wait of each rank
 * in each collective.
 */
#include "merge/export/sqlite/sqlite_collectives.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/compare.h"
#include "merge/export/sqlite/sqlite_paths.h"
#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/ranks/arrivals.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/rank_lists.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"

static int64_t process_id(size_t log)
{
	return (int64_t)log + 1;
}

static void bind_known(struct sqlite *s, enum statement statement, int column, uint64_t value)
{
	if (value)
		sqlite_number(s, statement, column, sqlite_limited(value));
	else
		sqlite_null(s, statement, column);
}

static void put_communicator(struct sink *sink, const struct run *run, size_t c)
{
	const struct communicator *communicator = &run->compared->report.communicators.list[c];
	char *ranks = communicator_ranks_text(run, communicator);
	struct sqlite *s = sink->state;
	char name[32];

	communicator_name(communicator, name, sizeof(name));
	sqlite_number(s, INSERT_COMMUNICATOR, 1, (int64_t)c + 1);
	sqlite_text(s, INSERT_COMMUNICATOR, 2, name);
	sqlite_number(s, INSERT_COMMUNICATOR, 3, communicator->is_by_order);
	bind_known(s, INSERT_COMMUNICATOR, 4, communicator->rank_count);
	sqlite_number(s, INSERT_COMMUNICATOR, 5, (int64_t)communicator->member_count);
	sqlite_text(s, INSERT_COMMUNICATOR, 6, ranks);
	sqlite_put(sink, INSERT_COMMUNICATOR);
	free(ranks);
}

COMPARE_BY(compare_works, struct collective_work, UP(log) UP(ticket))

static void bind_work(struct sqlite *s, const struct rank_log *log,
		      const struct rank_collective *item)
{
	const struct collective_work wanted = {.log = log->log, .ticket = item->ticket};
	const struct collective_work *work = NULL;

	if (s->collective_count)
		work = bsearch(&wanted, s->collectives, s->collective_count, sizeof(wanted),
			       compare_works);
	if (work)
		sqlite_number(s, INSERT_COLLECTIVE, 14, work->work_id);
}

/* Binds what one log says of a collective. */
static void bind_collective(struct sink *sink, const struct inputs *inputs,
			    const struct rank_log *log, const struct rank_collective *item)
{
	struct sqlite *s = sink->state;
	int64_t aligned_ns = inputs->logs[log->log].aligned_ns;

	sqlite3_clear_bindings(s->statements[INSERT_COLLECTIVE]);
	sqlite_number(s, INSERT_COLLECTIVE, 1, process_id(log->log));
	sqlite_text(s, INSERT_COLLECTIVE, 4, collective_operation_names[item->operation]);
	bind_known(s, INSERT_COLLECTIVE, 5, item->bytes);
	sqlite_number(s, INSERT_COLLECTIVE, 6, log->members[item->member].device);
	sqlite_number(s, INSERT_COLLECTIVE, 7, item->start_ns + aligned_ns);
	sqlite_number(s, INSERT_COLLECTIVE, 8, item->end_ns + aligned_ns);
	bind_work(s, log, item);
}

/* Writes the collectives of one member. */
static void put_member(struct sink *sink, const struct run *run, size_t c, size_t m)
{
	const struct collectives_report *report = &run->compared->report;
	const struct communicator *communicator = &report->communicators.list[c];
	const struct comm_member *member = &communicator->members[m];
	const struct rank_clock *clock = &report->clocks.list[member->host];
	struct sqlite *s = sink->state;

	for (size_t i = member->first; i < member->first + member->count; i++) {
		const struct rank_collective *item = comm_item(member, i);
		const struct arrivals *arrivals = &communicator->arrivals[i];
		double exposed_ns, wait_ns = arrivals_wait_ns(communicator, m, i, &report->clocks,
							      &exposed_ns);

		bind_collective(sink, run->inputs, member->log, item);
		sqlite_number(s, INSERT_COLLECTIVE, 2, (int64_t)c + 1);
		sqlite_number(s, INSERT_COLLECTIVE, 3, (int64_t)i);
		sqlite_number(s, INSERT_COLLECTIVE, 9,
			      llround(rank_clock_ns(clock, item->start_ns)));
		if (arrivals->has_waits) {
			sqlite_number(s, INSERT_COLLECTIVE, 10, (int64_t)wait_ns);
			sqlite_number(s, INSERT_COLLECTIVE, 11, (int64_t)exposed_ns);
			sqlite_number(s, INSERT_COLLECTIVE, 12, (int64_t)arrivals->transfer_ns);
			sqlite_number(s, INSERT_COLLECTIVE, 13, arrivals->late == m);
		}
		sqlite_put(sink, INSERT_COLLECTIVE);
	}
}

/* Whether a log takes part in a communicator of several ranks, as one of its members. */
static bool is_compared(const struct communicators *communicators, const struct rank_log *log,
			uint32_t member)
{
	for (size_t c = 0; c < communicators->count; c++)
		for (size_t m = 0; m < communicators->list[c].member_count; m++)
			if (communicators->list[c].members[m].member == &log->members[member])
				return true;
	return false;
}

/* Writes the collectives of a log that no other log has. */
static void put_alone(struct sink *sink, const struct run *run, const struct rank_log *log)
{
	const struct communicators *communicators = &run->compared->report.communicators;

	for (uint32_t m = 0; m < log->member_count; m++) {
		if (is_compared(communicators, log, m))
			continue;
		for (size_t i = 0; i < log->count; i++) {
			if (log->list[i].member != m)
				continue;
			bind_collective(sink, run->inputs, log, &log->list[i]);
			sqlite_put(sink, INSERT_COLLECTIVE);
		}
	}
}

static void put_causes(struct sink *sink, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	struct sqlite *s = sink->state;

	for (size_t c = 0; c < report->cause_count; c++) {
		const struct wait_cause *cause = &report->causes[c];

		sqlite_number(s, INSERT_WAIT_CAUSE, 1, process_id(cause->log));
		if (cause->node == PATH_ROOT)
			sqlite_null(s, INSERT_WAIT_CAUSE, 2);
		else
			sqlite_number(s, INSERT_WAIT_CAUSE, 2, cause->node);
		sqlite_number(s, INSERT_WAIT_CAUSE, 3, sqlite_limited(cause->wait_ns));
		sqlite_number(s, INSERT_WAIT_CAUSE, 4, sqlite_limited(cause->cost_ns));
		sqlite_put(sink, INSERT_WAIT_CAUSE);
		if (cause->node != PATH_ROOT)
			sqlite_add_cause(sink, &run->paths, cause->node);
	}
}

static void put_clocks(struct sink *sink, const struct rank_clocks *clocks)
{
	struct sqlite *s = sink->state;

	for (size_t h = 0; h < clocks->count; h++) {
		const struct rank_clock *clock = &clocks->list[h];

		sqlite3_clear_bindings(s->statements[INSERT_HOST_CLOCK]);
		sqlite_clean_text(s, INSERT_HOST_CLOCK, 1, clock->log->host);
		if (rank_clock_is_known(clocks, h)) {
			sqlite_number(s, INSERT_HOST_CLOCK, 2, (int64_t)clock->at_ns);
			sqlite_number(s, INSERT_HOST_CLOCK, 3, -(int64_t)clock->offset_ns);
			sqlite3_bind_double(s->statements[INSERT_HOST_CLOCK], 4,
					    -clock->drift * 1e6);
			sqlite_number(s, INSERT_HOST_CLOCK, 5, (int64_t)clock->error_ns + 1);
		}
		sqlite_number(s, INSERT_HOST_CLOCK, 6, (int64_t)clock->bound_count);
		sqlite_number(s, INSERT_HOST_CLOCK, 7, clock->log->aligned_ns);
		sqlite_put(sink, INSERT_HOST_CLOCK);
	}
}

void sqlite_put_collectives(struct sink *sink, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct communicators *communicators = &report->communicators;
	struct sqlite *s = sink->state;

	if (!run->needs.ranks)
		return;
	if (s->collective_count)
		qsort(s->collectives, s->collective_count, sizeof(*s->collectives), compare_works);
	for (size_t c = 0; c < communicators->count; c++) {
		put_communicator(sink, run, c);
		for (size_t m = 0; m < communicators->list[c].member_count; m++)
			put_member(sink, run, c, m);
	}
	for (size_t l = 0; l < run->compared->log_count; l++)
		put_alone(sink, run, &run->compared->logs[l]);
	put_causes(sink, run);
	put_clocks(sink, &report->clocks);
}
