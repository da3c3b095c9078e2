/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/rules_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/findings/conclusions.h"
#include "merge/findings/finding_place.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/read/inputs.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"

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
static int set_place(const struct run *run, struct finding_place *place, uint32_t node)
{
	const struct paths *paths = &run->paths;
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = node == PATH_ROOT ? 0 : paths_chain(paths, node, &chain, &capacity);

	place->node = node;
	place->function = wait_cause_frame(paths, node);
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
		if (name == place->function) {
			place->file = frame.file;
			place->line = frame.line;
			place->says_line = frame.says_line;
			place->is_own = frame.line;
		}
		xt_append(place->frames, place->frame_count, place->frame_capacity, frame);
	}
	free(chain);
	return depth < 0 ? depth : 0;
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

static int set_places(struct run *run, struct finding *finding)
{
	const struct rank_verdict *verdict = &run->compared->report.verdict;
	bool has_path = verdict->kind == VERDICT_RANK || verdict->kind == VERDICT_MOVING ||
			verdict->node != PATH_ROOT;
	char *text;

	finding->place_count = finding->place_all_count = 1;
	if (has_path)
		return set_place(run, &finding->places[0], verdict->node);
	text = place_text(run, verdict);
	finding->places[0].function = clean_name(&run->paths.names, text);
	free(text);
	return 0;
}

static const char *advice_for(const struct collectives_report *report)
{
	const struct rank_verdict *verdict = &report->verdict;
	const struct communicator *link =
		verdict->kind == VERDICT_LINK ? &report->communicators.list[verdict->communicator]
					      : NULL;

	if (link && link->rank_count > link->member_count)
		return no_log_advice;
	if (verdict->kind == VERDICT_HANG && verdict->log != SIZE_MAX)
		return verdict->node == PATH_ROOT ? no_work_advice : absent_advice;
	return verdict->is_of_launches ? launch_advice : advice[verdict->kind];
}

static void add_finding(struct run *run, struct finding *finding)
{
	struct findings *findings = &run->found->findings;

	finding->what = verdict_text(run);
	finding->places[0].cost_ns = finding->places[0].path_cost_ns = finding->cost_ns;
	if (set_places(run, finding)) {
		finding_free(finding);
		xt_out_of_memory(0);
	}
	xt_append(findings->list, findings->count, findings->capacity, *finding);
}

static void report_hang(struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_verdict *verdict = &report->verdict;
	const struct communicator *list = report->communicators.list;
	uint64_t rank_count = list[report->unfinished.list[0].communicator].member_count;
	uint64_t cost_ns = verdict->cost_ns * rank_count;
	bool is_rank = verdict->log != SIZE_MAX;
	struct finding finding = {
		.rule = RULE_HANG,
		.process_count = 1,
		.process_index = is_rank ? verdict->log : 0,
		.cost_ns = cost_ns,
		.whole_ns =
			verdict->share > 0 ? (uint64_t)((double)cost_ns / verdict->share) : cost_ns,
		.advice = advice_for(report),
	};

	if (!rule_reports(run->settings, RULE_HANG, finding.cost_ns, finding.whole_ns))
		return;
	finding.process = xt_strdup(is_rank ? run->labels[verdict->log] : "all ranks");
	finding_add_evidence(&finding, "unfinished_collective_count", report->unfinished.count);
	add_finding(run, &finding);
}

void findings_compare_ranks(struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_verdict *verdict = &report->verdict;
	size_t log = verdict->kind == VERDICT_RANK ? verdict->log : 0;
	struct finding finding = {
		.rule = RULE_LATE_RANK,
		.process_count = 1,
		.process_index = log,
		.cost_ns = (uint64_t)(verdict->share * report->times.ranks_ns),
		.whole_ns = (uint64_t)report->times.ranks_ns,
		.advice = advice_for(report),
	};

	if (verdict->kind == VERDICT_HANG) {
		report_hang(run);
		return;
	}
	if (verdict->kind == VERDICT_NONE || verdict->kind == VERDICT_UNKNOWN ||
	    !rule_reports(run->settings, RULE_LATE_RANK, finding.cost_ns, finding.whole_ns))
		return;
	finding.process = xt_strdup(verdict->kind == VERDICT_RANK ? run->labels[log] : "all ranks");
	if (verdict->kind != VERDICT_LINK)
		finding_add_evidence(&finding, "waiting_rank_count",
				     count_waiting(report, run->inputs->count));
	finding_add_evidence(&finding, "lost_ns_of_all_ranks", verdict->cost_ns);
	add_finding(run, &finding);
}
