/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/compared_ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"
#include "merge/sums/settings.h"

#define LISTED_MAX  1000 /* mismatches and unfinished collectives */
#define SLOW_FACTOR 1.5	 /* a transfer is slow if it takes so much longer than comparable ones */
#define FAST_PART   0.05 /* comparable transfers: the fastest twentieth */

/* Returns the group of a collective, which is added if needed. */
static struct collective_group *group_of(struct collective_groups *groups, size_t communicator,
					 const struct arrivals *arrivals)
{
	const uint64_t key[] = {communicator, arrivals->bytes, arrivals->operation};
	bool is_new;
	uint32_t id = xt_intern(&groups->ids, key, sizeof(key), &is_new);

	if (is_new)
		list_append(*groups, (struct collective_group){.communicator = communicator,
							       .operation = arrivals->operation,
							       .bytes = arrivals->bytes});
	return &groups->list[id - 1];
}

/* Adds a collective to its group. */
static void collective_groups_add(struct collective_groups *groups, size_t communicator,
				  size_t rank_count, const struct arrivals *arrivals)
{
	struct collective_group *group = group_of(groups, communicator, arrivals);

	group->rank_count = rank_count;
	group->count++;
	group->wait_ns += (uint64_t)arrivals->wait_ns;
	if (!arrivals->has_transfer)
		return;
	list_append(group->transfers,
		    (struct transfer_time){arrivals->transfer_ns, arrivals->exposed_transfer_ns});
}

COMPARE_BY(compare_transfers, struct transfer_time, UP(ns))

/* Orders groups whose transfers should take the same time next to each other. */
static int compare_kinds(const void *a, const void *b)
{
	const struct collective_group *x = *(struct collective_group *const *)a;
	const struct collective_group *y = *(struct collective_group *const *)b;

	return ORDER(x->operation, y->operation) ?: ORDER(x->bytes, y->bytes)
		       ?: ORDER(x->rank_count, y->rank_count);
}

/* Sums up what is slow in comparable groups. Transfers of unknown sizes cannot be compared. */
static void find_slow(struct collective_group **like, size_t count)
{
	size_t all_count = 0, at = 0;
	double *all_ns, fast_ns;

	for (size_t g = 0; g < count; g++)
		all_count += like[g]->transfers.count;
	if (!all_count || !like[0]->bytes)
		return;
	all_ns = xt_malloc(all_count * sizeof(*all_ns));
	for (size_t g = 0; g < count; g++)
		for (size_t t = 0; t < like[g]->transfers.count; t++)
			all_ns[at++] = like[g]->transfers.list[t].ns;
	qsort(all_ns, all_count, sizeof(*all_ns), compare_doubles);
	fast_ns = all_ns[(size_t)(FAST_PART * (double)all_count)];
	free(all_ns);
	for (size_t g = 0; g < count; g++)
		for (size_t t = 0; t < like[g]->transfers.count; t++) {
			const struct transfer_time *transfer = &like[g]->transfers.list[t];

			if (transfer->ns > SLOW_FACTOR * fast_ns)
				like[g]->slow_ns += (uint64_t)fmin(transfer->ns - fast_ns,
								   transfer->exposed_ns);
		}
}

static void find_median(struct collective_group *group)
{
	const struct transfer_time *sorted = group->transfers.list;
	size_t count = group->transfers.count;

	if (!count)
		return;
	SORT(group->transfers.list, count, compare_transfers);
	group->transfer_ns = (uint64_t)((sorted[(count - 1) / 2].ns + sorted[count / 2].ns) / 2);
}

/* Computes the medians, and what is slow. */
static void collective_groups_finish(struct collective_groups *groups)
{
	struct collective_group **sorted = xt_malloc((groups->count + 1) * sizeof(*sorted));

	for (size_t g = 0; g < groups->count; g++) {
		find_median(&groups->list[g]);
		sorted[g] = &groups->list[g];
	}
	SORT(sorted, groups->count, compare_kinds);
	for (size_t from = 0, until; from < groups->count; from = until) {
		for (until = from + 1;
		     until < groups->count && !compare_kinds(&sorted[from], &sorted[until]);
		     until++)
			;
		find_slow(sorted + from, until - from);
	}
	free(sorted);
}

static void collective_groups_free(struct collective_groups *groups)
{
	for (size_t g = 0; g < groups->count; g++)
		free(groups->list[g].transfers.list);
	free(groups->list);
	interner_free(&groups->ids);
	*groups = (struct collective_groups){0};
}

static void add_mismatch(struct collectives_report *report, size_t communicator, size_t number)
{
	const struct communicator *one = &report->communicators.list[communicator];
	const struct rank_collective *first = NULL;
	enum mismatch what = MISMATCH_BYTES;

	for (size_t m = 0; m < one->members.count; m++) {
		const struct rank_collective *item = comm_item(&one->members.list[m], number);

		first = first ? first : item;
		if (item && item->operation != first->operation)
			what = MISMATCH_OPERATION;
	}
	if (report->mismatches.count == LISTED_MAX)
		return;
	list_append(report->mismatches, (struct collective_mismatch){communicator, number, what});
}

/* Adds a span of time to the bins that it touches. */
static void add_to_bins(const struct collectives_report *report, float bins[RANK_BINS],
			double from_ns, double until_ns)
{
	double bin_ns = report->times.job_ns / RANK_BINS;
	size_t first;

	if (bin_ns <= 0 || from_ns >= until_ns)
		return;
	from_ns = fmax(from_ns - report->times.first_ns, 0);
	until_ns = fmin(until_ns - report->times.first_ns, report->times.job_ns);
	first = (size_t)(from_ns / bin_ns);
	for (size_t b = first; b < RANK_BINS && (double)b * bin_ns < until_ns; b++)
		bins[b] += (float)((fmin(until_ns, (double)(b + 1) * bin_ns) -
				    fmax(from_ns, (double)b * bin_ns)) /
				   bin_ns);
}

static void add_rank_waits(struct collectives_report *report,
			   const struct communicator *communicator, size_t number)
{
	const struct arrivals *arrivals = &communicator->arrivals[number];

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];
		const struct rank_collective *item = comm_item(member, number);
		struct rank_waits *rank = &report->ranks[member->log->log];
		double exposed_ns;
		double wait_ns =
			arrivals_wait_ns(communicator, m, number, &report->clocks, &exposed_ns);

		if (!item)
			continue;
		if (m == arrivals->late)
			add_to_bins(report, rank->late, arrivals->mean_ns, arrivals->last_ns);
		else if (exposed_ns > 0)
			add_to_bins(report, rank->waiting, arrivals->last_ns - exposed_ns,
				    arrivals->last_ns);
		rank->wait_ns += (uint64_t)wait_ns;
		rank->exposed_ns += (uint64_t)exposed_ns;
		report->times.wait_ns += (uint64_t)wait_ns;
		report->times.exposed_ns += (uint64_t)exposed_ns;
		rank->transfer_ns +=
			(uint64_t)fmax((double)(item->end_ns - item->start_ns) - wait_ns, 0);
	}
	report->ranks[communicator->members.list[arrivals->late].log->log].late_count++;
}

static void add_communicator(struct collectives_report *report, size_t c)
{
	const struct communicator *communicator = &report->communicators.list[c];
	size_t expected = larger(communicator->rank_count, communicator->members.count);

	for (size_t i = 0; i < communicator->instance_count; i++) {
		const struct arrivals *arrivals = &communicator->arrivals[i];

		if (arrivals->is_different) {
			add_mismatch(report, c, i);
			continue;
		}
		report->counts.matched_count += arrivals->present_count == expected;
		report->counts.by_order_count +=
			arrivals->present_count == expected && communicator->is_by_order;
		report->counts.partial_count += arrivals->present_count < expected;
		report->counts.compared_count += arrivals->has_waits;
		collective_groups_add(&report->groups, c, communicator->members.count, arrivals);
		if (arrivals->has_waits)
			add_rank_waits(report, communicator, i);
	}
}

/* Notes what the calls of a member say of an unfinished collective. */
static void note_open_calls(const struct collectives_report *report,
			    const struct comm_member *member, struct unfinished_collective *row)
{
	const struct communicator *communicator = &report->communicators.list[row->communicator];
	const struct rank_clock *clock = &report->clocks.list[member->host];
	size_t next = member->first + member->count;

	for (size_t o = 0; o < member->log->open_calls.count; o++) {
		const struct rank_open_call *call = &member->log->open_calls.list[o];

		if (call->communicator != communicator->key || next++ != row->number)
			continue;
		row->operation = call->operation;
		row->begin_ns = fmin(row->begin_ns, rank_clock_ns(clock, call->begin_ns));
	}
}

COMPARE_BY(compare_begins, struct unfinished_collective, UP(begin_ns) UP(communicator) UP(number))

/* Lists the collectives that a rank waits for. If all entered one, it may just not have begun. */
static void add_unfinished(struct collectives_report *report, size_t c)
{
	const struct communicator *communicator = &report->communicators.list[c];
	size_t reach = communicator->instance_count, least = SIZE_MAX;

	for (size_t m = 0; m < communicator->members.count; m++) {
		size_t own = comm_member_reach(communicator, m);

		reach = own > reach ? own : reach;
		least = own < least ? own : least;
	}
	if (least == reach && communicator->rank_count <= communicator->members.count)
		return;
	for (size_t i = communicator->instance_count;
	     i < reach && report->unfinished.count < LISTED_MAX; i++) {
		struct unfinished_collective *row =
			xt_new(report->unfinished.list, report->unfinished.count,
			       report->unfinished.capacity);

		*row = (struct unfinished_collective){
			.communicator = c, .number = i, .begin_ns = HUGE_VAL};
		for (size_t m = 0; m < communicator->members.count; m++)
			note_open_calls(report, &communicator->members.list[m], row);
	}
}

COMPARE_BY(compare_causes, struct wait_cause, DOWN(cost_ns) UP(log) UP(node))
COMPARE_BY(compare_step_causes, struct step_cause, UP(step) UP(log) DOWN(cost_ns) UP(node))

/* Adds the time of the devices of a log from their first to their last collective. */
static void add_rank_time(struct collectives_report *report, const struct rank_log *log,
			  const struct rank_clock *clock, double *last_ns)
{
	double first_ns[TIMELINE_DEVICES_MAX], until_ns[TIMELINE_DEVICES_MAX] = {0};

	for (size_t i = 0; i < log->count; i++) {
		size_t device = log->members.list[log->list[i].member].device;
		double start_ns = rank_clock_ns(clock, log->list[i].start_ns);
		double end_ns = rank_clock_ns(clock, log->list[i].end_ns);

		if (device >= TIMELINE_DEVICES_MAX)
			continue;
		if (until_ns[device] <= 0)
			first_ns[device] = start_ns;
		until_ns[device] = fmax(until_ns[device], end_ns - first_ns[device]);
		report->times.first_ns = fmin(report->times.first_ns, start_ns);
		*last_ns = fmax(*last_ns, end_ns);
	}
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++) {
		report->times.ranks_ns += until_ns[d];
		report->ranks[log->log].time_ns += (uint64_t)until_ns[d];
	}
}

/* Splits the time of each rank. Its waits are known by now. */
static void split_times(struct collectives_report *report, const struct run *run)
{
	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];
		struct rank_waits *rank = &report->ranks[log->log];
		uint64_t alone_ns = 0;

		for (size_t i = 0; i < log->count; i++)
			alone_ns += (uint64_t)(log->list[i].end_ns - log->list[i].alone_from_ns);
		rank->idle_ns = log->idle_ns;
		rank->compute_ns = log->busy_ns > alone_ns ? log->busy_ns - alone_ns : 0;
		rank->communication_ns =
			alone_ns > rank->exposed_ns ? alone_ns - rank->exposed_ns : 0;
	}
}

static void find_job_time(struct collectives_report *report, const struct run *run)
{
	double last_ns = -HUGE_VAL;

	report->times.first_ns = HUGE_VAL;
	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];

		add_rank_time(report, log, &report->clocks.list[report->clocks.hosts[log->log]],
			      &last_ns);
	}
	report->times.job_ns =
		last_ns > report->times.first_ns ? last_ns - report->times.first_ns : 0;
	for (size_t c = 0; c < report->communicators.count; c++)
		if (report->communicators.list[c].members.count > report->largest_count)
			report->largest_count = report->communicators.list[c].members.count;
}

static size_t job_group(const size_t *parents, size_t log)
{
	while (parents[log] != log)
		log = parents[log];
	return log;
}

/* Whether both have an id of this kind, and these differ. */
static bool ids_differ(const char *a, const char *b)
{
	return a[0] && b[0] && strcmp(a, b) != 0;
}

/* Whether two logs of different groups have the same rank, or ids of different jobs. */
static bool are_several_jobs(const struct inputs *inputs, const size_t *parents)
{
	for (size_t i = 0; i < inputs->count; i++)
		for (size_t j = 0; j < i; j++) {
			const struct input *a = &inputs->logs[i], *b = &inputs->logs[j];
			bool is_same = a->rank != RANK_UNKNOWN && a->rank == b->rank;

			if ((is_same || ids_differ(a->run, b->run) ||
			     ids_differ(a->batch_job, b->batch_job)) &&
			    job_group(parents, i) != job_group(parents, j))
				return true;
		}
	return false;
}

/* Groups of several logs. */
static size_t count_groups(const size_t *parents, size_t log_count)
{
	size_t *sizes = xt_calloc(log_count + 1, sizeof(*sizes)), count = 0;

	for (size_t l = 0; l < log_count; l++)
		count += ++sizes[job_group(parents, l)] == 2;
	free(sizes);
	return count;
}

/*
 * Counts the jobs: groups of logs that collectives connect. Groups may be parts of one job, such as
 * tensor-parallel groups, if they have no common rank and no different ids.
 */
static void count_jobs(struct collectives_report *report, const struct inputs *inputs)
{
	size_t *parents = xt_malloc((inputs->count + 1) * sizeof(*parents));

	report->job_count = 1;
	for (size_t l = 0; l < inputs->count; l++)
		parents[l] = l;
	for (size_t c = 0; c < report->communicators.count; c++) {
		const struct communicator *communicator = &report->communicators.list[c];
		size_t first = job_group(parents, communicator->members.list[0].log->log);

		for (size_t m = 1; m < communicator->members.count; m++)
			parents[job_group(parents, communicator->members.list[m].log->log)] = first;
	}
	if (are_several_jobs(inputs, parents))
		report->job_count = count_groups(parents, inputs->count);
	free(parents);
}

void collectives_report_make(struct collectives_report *report, const struct run *run)
{
	const struct inputs *inputs = run->inputs;

	report->ranks = xt_calloc(inputs->count + 1, sizeof(*report->ranks));
	rank_clocks_init(&report->clocks, inputs);
	communicators_find(&report->communicators, run->compared->logs, run->compared->log_count,
			   inputs, report->clocks.hosts);
	rank_clocks_align(&report->clocks, &report->communicators);
	arrivals_compare(&report->communicators, &report->clocks);
	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];

		report->ranks[log->log].collective_count = log->count;
		report->counts.all_count += log->count;
	}
	find_job_time(report, run);
	for (size_t c = 0; c < report->communicators.count; c++) {
		add_communicator(report, c);
		add_unfinished(report, c);
	}
	split_times(report, run);
	count_jobs(report, inputs);
	collective_groups_finish(&report->groups);
	blame_waits(report, run);
	SORT(report->causes.list, report->causes.count, compare_causes);
	SORT(report->step_causes.list, report->step_causes.count, compare_step_causes);
	SORT(report->unfinished.list, report->unfinished.count, compare_begins);
	mpi_waits_find(&report->mpi, run);
	rank_spread_finish(&run->sums->spread, &run->paths);
	verdict_find(report, run);
}

void collectives_report_free(struct collectives_report *report)
{
	collective_groups_free(&report->groups);
	communicators_free(&report->communicators);
	rank_clocks_free(&report->clocks);
	mpi_waits_free(&report->mpi);
	interner_free(&report->causes.ids);
	interner_free(&report->step_causes.ids);
	free_all(report->ranks, report->causes.list, report->step_causes.list,
		 report->mismatches.list, report->unfinished.list);
	*report = (struct collectives_report){0};
}

const struct step_cause *step_cause_of(const struct collectives_report *report, uint32_t step,
				       uint64_t *mean_ns)
{
	const struct step_cause *list = report->step_causes.list, *worst = NULL;
	size_t count = report->step_causes.count;
	size_t i = FIRST_NOT(c, 0, count, list[c].step < step);
	uint64_t most_ns = 0;

	if (report->job_count > 1)
		return NULL;
	while (i < count && list[i].step == step) {
		const struct step_cause *first = &list[i];
		uint64_t cost_ns = 0;

		for (; i < count && list[i].step == step && list[i].log == first->log; i++)
			cost_ns += list[i].cost_ns;
		if (cost_ns > most_ns) {
			most_ns = cost_ns;
			worst = first;
		}
	}
	*mean_ns = most_ns / collectives_other_ranks(report);
	return worst;
}

/* Adds where a member waited. places: by node, its place in the list + 1; only zeros. */
static void add_waits(struct rank_weights *weights, const struct run *run,
		      const struct communicator *communicator, size_t m, size_t *places)
{
	const struct comm_member *member = &communicator->members.list[m];
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
			list_append(*weights, part);
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
		for (size_t m = 0; m < communicators->list[c].members.count; m++)
			add_waits(weights, run, &communicators->list[c], m, places);
	free(places);
}

/* Returns where --by puts a path of a log, the first place if there are several. */
static uint32_t path_of(const struct rank_log *log, uint32_t common)
{
	const struct rank_roots *roots = &log->roots;
	size_t at = FIRST_NOT(r, 0, roots->count, roots->list[r].common < common);

	return at < roots->count && roots->list[at].common == common ? roots->list[at].rooted
								     : common;
}

/* Returns the root of --by above the first collective of a log, PATH_ROOT without --by. */
static uint32_t root_of(const struct rank_log *log, const struct paths *paths)
{
	uint32_t root;

	if (!log->roots.own_paths || !log->count)
		return PATH_ROOT;
	root = log->roots.own_paths[0];
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
	list_append(*weights, part);
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

int rank_weights_add(struct rank_weights *weights, struct run *run)
{
	enum weight shown = run->settings->weight;

	if (RANK_WEIGHTS >> shown & 1 && !run->compared->report.communicators.count) {
		report_error(run->report, STATUS_FAILED,
			     "cannot use --weight %s: no collective is in several of the logs",
			     weight_specs[shown].name);
		return -EINVAL;
	}
	add_all_waits(weights, run);
	add_all_causes(weights, run);
	for (size_t p = 0; p < weights->count; p++) {
		const struct rank_weight *part = &weights->list[p];

		run->paths.nodes[part->node].weights[part->weight] += part->ns;
	}
	return 0;
}

void rank_weights_free(struct rank_weights *weights)
{
	free(weights->list);
	*weights = (struct rank_weights){0};
}
