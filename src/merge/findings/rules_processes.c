/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings that compare processes: device imbalance between those of one program, each with its own
 * device, as in distributed training, and ranks that wait for each other in collectives.
 */
#include "merge/findings/rules_processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/findings/callsite_rules.h"
#include "merge/findings/headline.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/read/inputs.h"
#include "merge/steps/steps.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"

static void note_device(const struct detection *detection, const struct device_stats *row)
{
	struct reading *reading = detection->reading;
	struct findings *findings = &reading->run->found->findings;
	struct finding_device *device;
	uint32_t top = busiest_callsite(detection->callsites, row->device);

	if (!top || row->kernel_count < DEVICE_KERNELS_MIN ||
	    findings->device_count == FINDING_DEVICES_MAX)
		return;
	device = xt_new(findings->devices, findings->device_count, findings->device_capacity);
	device->program = xt_strdup(model_meta(reading->model, "process.exe"));
	device->uuid = xt_strdup(model_gpu(reading->model, row->device, "uuid"));
	device->device = row->device;
	device->kernel_union_ns = row->kernel_union.ns;
	device->first_ns = process_time_ns(&reading->process, row->first_ns);
	device->last_ns = process_time_ns(&reading->process, row->last_ns);
	device->whole_ns = detection->whole_ns;
	device->process_index = reading->process.index;
	finding_place(reading, &detection->callsites->list[top], &device->place);
	device->place.count = detection->callsites->list[top].count;
}

void findings_note_devices(const struct detection *detection)
{
	for (size_t d = 0; d < detection->callsites->device_count; d++)
		note_device(detection, &detection->callsites->devices[d]);
}

/*
 * Devices that processes of one program used at the same time. Devices with the same UUID count as
 * one.
 */
struct group {
	struct finding_device *busiest;
	uint64_t most_ns;
	uint64_t count;
	uint64_t sum_ns;
	uint64_t whole_ns;
	size_t number;
	bool has_several; /* it includes several processes */
};

/* Uses doubles, because times from a damaged log could overflow. */
static double length_ns(int64_t from_ns, int64_t until_ns)
{
	return (double)until_ns - (double)from_ns;
}

/* True if the runs overlap enough. Runs after each other could not have shared their work. */
static bool overlaps(const struct finding_device *a, const struct finding_device *b)
{
	int64_t from_ns = a->first_ns > b->first_ns ? a->first_ns : b->first_ns;
	int64_t until_ns = a->last_ns < b->last_ns ? a->last_ns : b->last_ns;
	double x_ns = length_ns(a->first_ns, a->last_ns), y_ns = length_ns(b->first_ns, b->last_ns);

	return !strcmp(a->program, b->program) &&
	       length_ns(from_ns, until_ns) >= (x_ns < y_ns ? x_ns : y_ns) / 2;
}

/* Adds all remaining rows of this device that overlap with the first. */
static void take_device(struct findings *findings, struct group *group,
			const struct finding_device *first, struct finding_device *one)
{
	struct finding_device *top = one;
	uint64_t ns = 0;

	for (size_t d = 0; d < findings->device_count; d++) {
		struct finding_device *row = &findings->devices[d];

		if (row->is_compared || strcmp(row->uuid, one->uuid) || !overlaps(first, row))
			continue;
		row->is_compared = true;
		row->group = group->number;
		saturating_add(&ns, row->kernel_union_ns);
		if (row->kernel_union_ns > top->kernel_union_ns)
			top = row;
		group->whole_ns = larger(group->whole_ns, row->whole_ns);
		group->has_several |= row->process_index != first->process_index;
	}
	group->count++;
	saturating_add(&group->sum_ns, ns);
	if (group->busiest && ns <= group->most_ns)
		return;
	group->busiest = top;
	group->most_ns = ns;
}

static struct group group_of(struct findings *findings, struct finding_device *first)
{
	struct group group = {.number = ++findings->group_count};

	for (size_t d = 0; d < findings->device_count; d++) {
		struct finding_device *device = &findings->devices[d];

		if (!device->is_compared && overlaps(first, device))
			take_device(findings, &group, first, device);
	}
	return group;
}

/* The busiest remaining device, or NULL. */
static struct finding_device *next_device(struct findings *findings)
{
	struct finding_device *next = NULL;

	for (size_t d = 0; d < findings->device_count; d++) {
		struct finding_device *device = &findings->devices[d];

		if (!device->is_compared &&
		    (!next || device->kernel_union_ns > next->kernel_union_ns))
			next = device;
	}
	return next;
}

/* True if the imbalance was already found within one process. */
static bool is_reported(const struct findings *findings, const struct group *group)
{
	for (size_t f = 0; f < findings->count; f++)
		if (findings->list[f].rule == RULE_DEVICE_IMBALANCE &&
		    findings->list[f].process_index == group->busiest->process_index)
			return true;
	return false;
}

static bool is_member(const struct findings *findings, const struct group *group, uint32_t process)
{
	for (size_t d = 0; d < findings->device_count; d++)
		if (findings->devices[d].group == group->number &&
		    findings->devices[d].process_index == process)
			return true;
	return false;
}

/*
 * Drop findings about devices of single processes of this group; the group's finding, which is the
 * last one, covers them.
 */
static void drop_members(struct findings *findings, const struct group *group)
{
	size_t kept = 0;

	for (size_t f = 0; f < findings->count; f++) {
		struct finding finding = findings->list[f];

		if (finding.rule == RULE_DEVICE_IMBALANCE && f + 1 < findings->count &&
		    is_member(findings, group, finding.process_index))
			finding_free(&finding);
		else
			findings->list[kept++] = finding;
	}
	findings->count = kept;
}

static void add_finding(struct run *run, const struct group *group, uint64_t cost_ns)
{
	struct finding_device *busiest = group->busiest;
	struct finding *finding = finding_add(run, RULE_DEVICE_IMBALANCE, busiest->process_index,
					      cost_ns, group->whole_ns);
	char *where, most[TIME_BYTES], mean[TIME_BYTES];

	if (!finding)
		return;
	finding->place_count = finding->place_all_count = 1;
	finding->places[0] = busiest->place;
	finding->places[0].cost_ns = finding->places[0].path_cost_ns = cost_ns;
	busiest->place.frames = NULL; /* moved to the finding */
	where = finding_location(&run->paths, finding);
	finding->what = xt_asprintf(
		"GPU%u of %s is busy for %s, mostly with work launched in %s. The mean of "
		"the %llu GPUs of these processes is %s. Balanced GPUs would take %s "
		"less, %s of the active time.",
		busiest->device, finding->process, format_time_short(most, group->most_ns), where,
		(unsigned long long)group->count,
		format_time_short(mean, group->sum_ns / group->count), finding_cost(finding),
		finding_share(finding));
	free(where);
	finding_add_evidence(finding, "device_count", group->count);
	finding_add_evidence(finding, "busiest_device_time_ns", group->most_ns);
	finding_add_evidence(finding, "mean_device_time_ns", group->sum_ns / group->count);
	drop_members(&run->found->findings, group);
}

void findings_compare_devices(struct run *run)
{
	struct findings *findings = &run->found->findings;
	struct finding_device *first;

	for (size_t d = 0; d < findings->device_count; d++)
		findings->devices[d].is_compared = !findings->devices[d].uuid[0];
	while ((first = next_device(findings))) {
		struct group group = group_of(findings, first);
		uint64_t cost_ns = imbalance_ns(group.most_ns, group.sum_ns, group.count);

		if (cost_ns && group.has_several && !is_reported(findings, &group))
			add_finding(run, &group, cost_ns);
	}
}

static const char *const advice[] = {
	[VERDICT_NONE] = "",
	[VERDICT_RANK] = "Give this rank less to do there, or find what is different on its host.",
	[VERDICT_MOVING] = "Distribute this work evenly, or let it run ahead of the other ranks.",
	[VERDICT_LINK] = "Check the network between these hosts, and which ranks share it.",
	[VERDICT_UNKNOWN] = "",
	[VERDICT_HANG] = "Look for ranks without a log: one of these never came.",
};
static const char no_work_advice[] =
	"Find out why this rank did no GPU work. xtrace record --cpu shows "
	"what its CPU did.";
static const char no_log_advice[] =
	"Get the logs of all ranks first. If none of them is late, check "
	"the network between these hosts.";
static const char absent_advice[] = "Find out why this rank stopped or went another way after that "
				    "line. xtrace record --cpu shows what its CPU did.";
static const char launch_advice[] = "Look for what slows the CPU, such as other processes on the "
				    "same cores. Launch less: fewer "
				    "and longer kernels, or CUDA graphs.";

/* Adds the frames of the path above its leaf, and the line to look at. */
static void set_place(const struct run *run, struct finding_place *place, uint32_t node)
{
	const struct paths *paths = &run->paths;
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity);

	place->node = node;
	place->at.name = wait_cause_frame(paths, node);
	for (int f = 0; f + 1 < depth; f++) {
		uint32_t name = paths->nodes[chain[f]].name;
		struct finding_frame frame = {.name = name};

		if (paths_is_user_code(paths, name) &&
		    paths_line(paths, name)->line != LINE_SEVERAL) {
			frame.file = paths_line(paths, name)->file;
			frame.line = paths_line(paths, name)->line;
			frame.says_line =
				strstr(names_text(&paths->names, name, NULL), ":") != NULL;
		}
		if (name == place->at.name)
			place->at = frame;
		xt_append(place->frames, place->frame_count, place->frame_capacity, frame);
	}
	free(chain);
}

/* The late rank may wait, too, but it is not one of the others. */
static size_t count_waiting(const struct collectives_report *report, size_t log_count)
{
	size_t count = 0;

	for (size_t l = 0; l < log_count; l++)
		count += report->ranks[l].exposed_ns > report->ranks[l].time_ns / 100 &&
			 (report->verdict.kind != VERDICT_RANK || report->verdict.log != l);
	return count;
}

/* Names the ranks that a slow link connects, or the collective that hangs. */
static char *place_text(const struct run *run, const struct rank_verdict *verdict)
{
	const struct collectives_report *report = &run->compared->report;
	const struct communicator *list = report->communicators.list;
	const struct unfinished_collective *first = report->unfinished.list;
	char *ranks, *text;

	if (verdict->kind == VERDICT_HANG)
		return collective_text(run, &list[first->communicator], first->number,
				       first->operation);
	ranks = communicator_ranks_text(run, &list[verdict->communicator]);
	text = xt_asprintf("transfers between ranks %s", ranks);
	free(ranks);
	return text;
}

static void set_places(struct run *run, struct finding *finding)
{
	const struct rank_verdict *verdict = &run->compared->report.verdict;
	bool has_path = verdict->kind == VERDICT_RANK || verdict->kind == VERDICT_MOVING ||
			verdict->node != PATH_ROOT;
	char *text;

	finding->place_count = finding->place_all_count = 1;
	finding->places[0].cost_ns = finding->places[0].path_cost_ns = finding->cost_ns;
	if (has_path) {
		set_place(run, &finding->places[0], verdict->node);
		return;
	}
	text = place_text(run, verdict);
	finding->places[0].at.name = clean_name(&run->paths.names, text);
	free(text);
}

static const char *advice_for(const struct collectives_report *report)
{
	const struct rank_verdict *verdict = &report->verdict;
	const struct communicator *link =
		verdict->kind == VERDICT_LINK ? &report->communicators.list[verdict->communicator]
					      : NULL;

	if (link && link->rank_count > link->members.count)
		return no_log_advice;
	if (verdict->kind == VERDICT_HANG && verdict->log != SIZE_MAX)
		return verdict->node == PATH_ROOT ? no_work_advice : absent_advice;
	return verdict->is_of_launches ? launch_advice : advice[verdict->kind];
}

/* Mean cost of late ranks for the others in the steps. 0 unless all ranks have steps. */
static uint64_t step_cost_ns(const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	uint64_t lost_ns = report->verdict.kind == VERDICT_RANK
				   ? report->ranks[report->verdict.log].step_cost_ns
			   : report->verdict.kind == VERDICT_MOVING ? report->times.step_cost_ns
								    : 0;

	return run->found->findings.step_process_count == run->compared->log_count
		       ? lost_ns + lost_ns / collectives_other_ranks(report)
		       : 0;
}

#define NEARLY_ALL 10 /* all but 1/10 */

/*
 * Writes ", nearly all of it in 7 of 10 steps, 20.2 ms each". Writes "" if most steps have a cost,
 * or if it is not known which have.
 */
static void format_late_steps(char text[96], const struct run *run, uint64_t step_count)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_verdict *verdict = &report->verdict;
	bool is_rank = verdict->kind == VERDICT_RANK;
	uint64_t all_ns =
		is_rank ? report->ranks[verdict->log].step_cost_ns : report->times.step_cost_ns;
	uint64_t sum_ns = 0, count = 0, others = collectives_other_ranks(report);
	LIST(uint64_t) costs_ns = {0};
	char each[TIME_BYTES];
	uint32_t step = 0;

	for (size_t c = 0; steps_are_alike(run) && c < report->step_causes.count; c++) {
		const struct step_cause *cause = &report->step_causes.list[c];

		if (is_rank && verdict->log != cause->log)
			continue;
		if (cause->step != step)
			list_append(costs_ns, 0);
		step = cause->step;
		costs_ns.list[costs_ns.count - 1] += cause->cost_ns;
	}
	SORT(costs_ns.list, costs_ns.count, compare_u64);
	while (count < costs_ns.count && sum_ns < all_ns - all_ns / NEARLY_ALL)
		sum_ns += costs_ns.list[costs_ns.count - ++count];
	free(costs_ns.list);
	text[0] = '\0';
	if (count && sum_ns >= all_ns - all_ns / NEARLY_ALL &&
	    count < step_count - step_count / NEARLY_ALL)
		snprintf(text, 96,
			 ", nearly all of it in %" PRIu64 " of %" PRIu64 " steps, %s each", count,
			 step_count, format_time_short(each, sum_ns / others / count));
}

/* log: SIZE_MAX for all ranks. Returns NULL if the user's settings do not report the cost. */
static struct finding *add_rank_finding(struct run *run, enum rule rule, size_t log,
					uint64_t cost_ns, uint64_t whole_ns)
{
	struct finding *finding =
		finding_add(run, rule, log == SIZE_MAX ? 0 : log, cost_ns, whole_ns);

	if (!finding)
		return NULL;
	if (log == SIZE_MAX)
		finding->process = "all ranks";
	finding->what = verdict_text(run, NULL);
	finding->advice = advice_for(&run->compared->report);
	set_places(run, finding);
	return finding;
}

static void report_hang(struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_verdict *verdict = &report->verdict;
	const struct communicator *list = report->communicators.list;
	uint64_t rank_count = list[report->unfinished.list[0].communicator].members.count;
	uint64_t cost_ns = verdict->cost_ns * rank_count;
	uint64_t whole_ns =
		verdict->share > 0 ? (uint64_t)((double)cost_ns / verdict->share) : cost_ns;
	struct finding *finding = add_rank_finding(run, RULE_HANG, verdict->log, cost_ns, whole_ns);

	if (finding)
		finding_add_evidence(finding, "unfinished_collective_count",
				     report->unfinished.count);
}

/* Replaces the cost in the job by that in the steps. */
static void describe_steps(const struct run *run, struct finding *finding)
{
	const uint64_t step_count = run->found->findings.step_count;
	char step[TIME_BYTES], steps[96], cost[192];

	finding->step_count = step_count;
	format_late_steps(steps, run, step_count / larger(run->compared->log_count, (size_t)1));
	snprintf(cost, sizeof(cost), "%s per step (%s of the step time)%s",
		 format_time_short(step, finding_step_ns(finding)), finding_share(finding), steps);
	free(finding->what);
	finding->what = verdict_text(run, cost);
}

void findings_compare_ranks(struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_verdict *verdict = &report->verdict;
	uint64_t job_cost_ns = (uint64_t)(verdict->share * report->times.ranks_ns);
	uint64_t steps_cost_ns = step_cost_ns(run);
	struct finding *finding;

	if (verdict->kind == VERDICT_HANG)
		report_hang(run);
	if (verdict->kind == VERDICT_HANG || verdict->kind == VERDICT_NONE ||
	    verdict->kind == VERDICT_UNKNOWN)
		return;
	finding = add_rank_finding(
		run, RULE_LATE_RANK, verdict->kind == VERDICT_RANK ? verdict->log : SIZE_MAX,
		steps_cost_ns ?: job_cost_ns,
		steps_cost_ns ? run->found->findings.steps_ns : (uint64_t)report->times.ranks_ns);
	if (!finding)
		return;
	if (steps_cost_ns)
		describe_steps(run, finding);
	if (verdict->kind == VERDICT_RANK && run->inputs->logs[verdict->log].rank != RANK_UNKNOWN)
		finding->headline = xt_asprintf("the other ranks wait for rank %u",
						run->inputs->logs[verdict->log].rank);
	if (verdict->kind != VERDICT_LINK)
		finding_add_evidence(finding, "waiting_rank_count",
				     count_waiting(report, run->inputs->count));
	finding_add_evidence(finding, "all_ranks_lost_ns", job_cost_ns);
}
