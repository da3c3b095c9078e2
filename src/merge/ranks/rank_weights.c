/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/rank_weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/ranks/arrivals.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/run.h"
#include "merge/sums/settings.h"

static void add(struct rank_weights *weights, struct rank_weight part)
{
	xt_append(weights->list, weights->count, weights->capacity, part);
}

/* Adds where a member waited. places: by node, its place in the list + 1; only zeros. */
static void add_waits(struct rank_weights *weights, const struct run *run,
		      const struct communicator *communicator, size_t m, size_t *places)
{
	const struct comm_member *member = &communicator->members[m];
	size_t first = weights->count;

	for (size_t i = 0; i < member->count; i++) {
		struct rank_weight part = {.log = member->log->log,
					   .node = rank_log_own_path(member->log, member->items[i]),
					   .common = member->log->list[member->items[i]].node,
					   .weight = WEIGHT_COLLECTIVE_WAIT};
		double exposed_ns;

		arrivals_wait_ns(communicator, m, member->first + i, &run->compared->report.clocks,
				 &exposed_ns);
		part.ns = (uint64_t)exposed_ns;
		if (part.ns && places[part.node]) {
			weights->list[places[part.node] - 1].ns += part.ns;
		} else if (part.ns) {
			add(weights, part);
			places[part.node] = weights->count;
		}
	}
	for (size_t p = first; p < weights->count; p++)
		places[weights->list[p].node] = 0;
}

static void add_all_waits(struct rank_weights *weights, const struct run *run)
{
	const struct communicators *communicators = &run->compared->report.communicators;
	size_t *places = xt_calloc(run->paths.node_count, sizeof(*places));

	for (size_t c = 0; c < communicators->count; c++)
		for (size_t m = 0; m < communicators->list[c].member_count; m++)
			add_waits(weights, run, &communicators->list[c], m, places);
	free(places);
}

/* Returns where --by puts a path of a log, the first place if there are several. */
static uint32_t path_of(const struct rank_log *log, uint32_t common)
{
	size_t from = 0, until = log->root_count;

	while (from < until) {
		size_t middle = from + (until - from) / 2;

		if (log->roots[middle].common < common)
			from = middle + 1;
		else
			until = middle;
	}
	return from < log->root_count && log->roots[from].common == common ? log->roots[from].rooted
									   : common;
}

/* Returns the root of --by above the first collective of a log, PATH_ROOT without --by. */
static uint32_t root_of(const struct rank_log *log, const struct paths *paths)
{
	uint32_t root;

	if (!log->own_paths || !log->count)
		return PATH_ROOT;
	root = log->own_paths[0];
	for (uint32_t n = log->list[0].node; n != PATH_ROOT; n = paths->nodes[n].parent)
		root = paths->nodes[root].parent;
	return root;
}

/* Adds what the paths of a log cost the other ranks. */
static void add_cause(struct rank_weights *weights, struct run *run, const struct rank_log *log,
		      const struct wait_cause *cause)
{
	struct rank_weight part = {.log = log->log,
				   .node = path_of(log, cause->node),
				   .common = cause->node,
				   .weight = WEIGHT_COLLECTIVE_CAUSE,
				   .ns = cause->cost_ns};

	if (!part.ns)
		return;
	if (cause->node == PATH_ROOT) {
		uint32_t name =
			names_intern(&run->paths.names, CAUSE_UNKNOWN, strlen(CAUSE_UNKNOWN));

		part.node = paths_child(&run->paths, root_of(log, &run->paths), name);
		part.common = paths_child(&run->paths, PATH_ROOT, name);
	}
	add(weights, part);
}

static void add_all_causes(struct rank_weights *weights, struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_log **logs = xt_calloc(run->inputs->count + 1, sizeof(*logs));

	for (size_t l = 0; l < run->compared->log_count; l++)
		logs[run->compared->logs[l].log] = &run->compared->logs[l];
	for (size_t c = 0; c < report->causes.count; c++)
		add_cause(weights, run, logs[report->causes.list[c].log], &report->causes.list[c]);
	free(logs);
}

/* Refuses to show a weight that would be 0 for every path. */
static int check_shown(const struct run *run)
{
	enum weight shown = run->settings->weight;

	if (!(RANK_WEIGHTS >> shown & 1) || run->compared->report.communicators.count)
		return 0;
	report_error(run->report, STATUS_FAILED,
		     "cannot use --weight %s: no collective is in several of the logs",
		     weight_specs[shown].name);
	return -EINVAL;
}

int rank_weights_add(struct rank_weights *weights, struct run *run)
{
	int error = check_shown(run);

	if (!error)
		add_all_waits(weights, run);
	if (!error)
		add_all_causes(weights, run);
	for (size_t p = 0; p < weights->count && !error; p++) {
		const struct rank_weight *part = &weights->list[p];

		run->paths.nodes[part->node].weights[part->weight] += part->ns;
	}
	return error;
}

void rank_weights_free(struct rank_weights *weights)
{
	free(weights->list);
	*weights = (struct rank_weights){0};
}
