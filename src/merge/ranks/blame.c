/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/blame.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/exporter.h"
#include "merge/ranks/arrivals.h"

#define SUSPECTS_MAX 16	  /* ranks that came last in collectives of one block */
#define SMALL_PART   0.02 /* parts of the excess below this are noise */

/* A rank that came last, and its time by node since the beginning of the block. */
struct suspect {
	size_t member;
	uint64_t *ns;
};

/* Time by node, of all ranks since the beginning of the block. */
struct comparison {
	struct collectives_report *report;
	const struct communicator *communicator;
	uint64_t *all_ns;
	uint32_t *touched; /* nodes with time */
	size_t touched_count;
	struct suspect suspects[SUSPECTS_MAX];
	size_t suspect_count;
	size_t node_count;
};

/* Whether most ranks could not go on before the end of a collective. */
static bool holds_up(const struct communicator *communicator, size_t number)
{
	size_t overlapped = 0, present = 0;

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct rank_collective *item = comm_item(&communicator->members[m], number);

		present += item != NULL;
		overlapped += item && item->is_overlapped;
	}
	return overlapped * 2 <= present;
}

/* Adds the time of a member between its collectives number - 1 and number. */
static void add_times(struct comparison *comparison, const struct comm_member *member,
		      size_t number, uint64_t *own_ns)
{
	const struct rank_log *log = member->log;
	size_t index, until;

	/* What comes before the first collective is the start of the program. */
	if (number <= member->first || number - member->first >= member->count)
		return;
	until = member->items[number - member->first];
	for (index = member->items[number - member->first - 1] + 1; index <= until; index++) {
		struct rank_times times = rank_times_before(log, index);
		uint32_t node;
		uint64_t ns;

		if (log->members[log->list[index].member].device != member->member->device)
			continue;
		while (rank_times_next(&times, &node, &ns)) {
			if (node >= comparison->node_count)
				continue;
			if (!comparison->all_ns[node])
				comparison->touched[comparison->touched_count++] = node;
			comparison->all_ns[node] += ns;
			if (own_ns)
				own_ns[node] += ns;
		}
	}
}

static struct suspect *find_suspect(struct comparison *comparison, size_t member)
{
	for (size_t s = 0; s < comparison->suspect_count; s++)
		if (comparison->suspects[s].member == member)
			return &comparison->suspects[s];
	return NULL;
}

/* The members that came last in collectives from `from` to `until`. Returns 0 or -ENOMEM. */
static int find_suspects(struct comparison *comparison, size_t from, size_t until)
{
	comparison->suspect_count = 0;
	for (size_t i = from; i < until; i++) {
		struct arrivals arrivals = arrivals_of(comparison->communicator, i,
						       &comparison->report->clocks);
		struct suspect *suspect;

		if (!arrivals.has_waits || find_suspect(comparison, arrivals.late) ||
		    comparison->suspect_count == SUSPECTS_MAX)
			continue;
		suspect = &comparison->suspects[comparison->suspect_count++];
		suspect->member = arrivals.late;
		if (!suspect->ns)
			suspect->ns = calloc(comparison->node_count, sizeof(*suspect->ns));
		if (!suspect->ns)
			return -ENOMEM;
	}
	return 0;
}

/* How much more time a suspect spent in a node than the mean of the other ranks. */
static double excess_ns(const struct comparison *comparison, const struct suspect *suspect,
			uint32_t node)
{
	uint64_t own = suspect->ns[node], others = comparison->all_ns[node] - own;

	return (double)own - (double)others / (double)(comparison->communicator->member_count - 1);
}

static int charge(struct comparison *comparison, const struct arrivals *arrivals)
{
	const struct suspect *suspect = find_suspect(comparison, arrivals->late);
	const struct comm_member *late = &comparison->communicator->members[arrivals->late];
	double late_ns = arrivals->last_ns - arrivals->mean_ns;
	double all_ns = 0, large_ns = 0, part;
	int error = 0;

	for (size_t t = 0; suspect && t < comparison->touched_count; t++) {
		double more_ns = excess_ns(comparison, suspect, comparison->touched[t]);

		all_ns += more_ns > 0 ? more_ns : 0;
	}
	for (size_t t = 0; suspect && t < comparison->touched_count; t++) {
		double more_ns = excess_ns(comparison, suspect, comparison->touched[t]);

		large_ns += more_ns > SMALL_PART * all_ns ? more_ns : 0;
	}
	part = large_ns > 0 && late_ns > 0 ? arrivals->wait_ns * (all_ns < late_ns ? all_ns / late_ns : 1)
					   : 0;
	for (size_t t = 0; part > 0 && t < comparison->touched_count && !error; t++) {
		uint32_t node = comparison->touched[t];
		double more_ns = excess_ns(comparison, suspect, node);

		if (more_ns > SMALL_PART * all_ns)
			error = collectives_add_cause(comparison->report, late->log->log, node,
						      (uint64_t)(part * more_ns / large_ns));
	}
	return error ? error
		     : collectives_add_cause(comparison->report, late->log->log, PATH_ROOT,
					     (uint64_t)(arrivals->wait_ns - part));
}

static void clear(struct comparison *comparison)
{
	for (size_t t = 0; t < comparison->touched_count; t++) {
		uint32_t node = comparison->touched[t];

		comparison->all_ns[node] = 0;
		for (size_t s = 0; s < comparison->suspect_count; s++)
			comparison->suspects[s].ns[node] = 0;
	}
	comparison->touched_count = 0;
}

/* Charges the waits in the collectives from `from` to `until`. */
static int blame_block(struct comparison *comparison, size_t from, size_t until)
{
	const struct communicator *communicator = comparison->communicator;
	int error = find_suspects(comparison, from, until);

	for (size_t i = from; i < until && comparison->suspect_count && !error; i++) {
		struct arrivals arrivals =
			arrivals_of(communicator, i, &comparison->report->clocks);

		for (size_t m = 0; m < communicator->member_count; m++) {
			struct suspect *suspect = find_suspect(comparison, m);

			add_times(comparison, &communicator->members[m], i,
				  suspect ? suspect->ns : NULL);
		}
		if (arrivals.wait_ns > 0)
			error = charge(comparison, &arrivals);
	}
	clear(comparison);
	return error;
}

static int blame_communicator(struct comparison *comparison)
{
	size_t from = 0, count = comparison->communicator->instance_count;
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		if (i + 1 < count && !holds_up(comparison->communicator, i))
			continue;
		error = blame_block(comparison, from, i + 1);
		from = i + 1;
	}
	return error;
}

int blame_waits(struct collectives_report *report, const struct run *run)
{
	struct comparison comparison = {.report = report, .node_count = run->paths.node_count};
	int error = 0;

	comparison.all_ns = calloc(comparison.node_count, sizeof(*comparison.all_ns));
	comparison.touched = calloc(comparison.node_count, sizeof(*comparison.touched));
	if (!comparison.all_ns || !comparison.touched)
		error = -ENOMEM;
	for (size_t c = 0; c < report->communicators.count && !error; c++) {
		comparison.communicator = &report->communicators.list[c];
		error = blame_communicator(&comparison);
	}
	for (size_t s = 0; s < SUSPECTS_MAX; s++)
		free(comparison.suspects[s].ns);
	free(comparison.touched);
	free(comparison.all_ns);
	return error;
}
