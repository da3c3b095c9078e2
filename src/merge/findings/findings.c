/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the rules, collects their findings, and lists them as a table.
 */
#include "merge/findings/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/findings/callsite_rules.h"
#include "merge/findings/headline.h"
#include "merge/findings/rules.h"
#include "merge/findings/rules_cpu.h"
#include "merge/findings/rules_processes.h"
#include "merge/steps/steps.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"
#include "merge/sums/settings.h"
#include "merge/tables/table.h"

/* Mark idle time as explained, even if the user hides the rule. */
static void mark_explained(struct detection *detection, enum rule rule)
{
	uint64_t threads = 0;

	if (rule_specs[rule].is_error)
		return;
	for (size_t c = 0; c < detection->candidate_count; c++) {
		detection->callsites->list[detection->candidates[c].callsite].is_explained = true;
		threads |= detection->callsites->list[detection->candidates[c].callsite].threads;
	}
	/* The cost of RULE_ALLOC_LOOP includes the frees. */
	for (uint32_t s = 1; s < detection->callsites->count && rule == RULE_ALLOC_LOOP; s++)
		if (detection->callsites->list[s].class == XT_API_FREE &&
		    !detection->callsites->list[s].is_async &&
		    detection->callsites->list[s].threads & threads)
			detection->callsites->list[s].is_explained = true;
}

/*
 * Threads run concurrently, so the cost is that of the thread that lost the most time. The cost of
 * a callsite is divided among the threads that call there.
 */
static uint64_t longest_ns(const struct detection *detection)
{
	uint64_t by_thread_ns[CALLSITES_THREADS] = {0}, longest_ns = 0;

	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct candidate *candidate = &detection->candidates[c];
		uint64_t threads = detection->callsites->list[candidate->callsite].threads;
		int count = __builtin_popcountll(threads);

		for (int t = 0; t < CALLSITES_THREADS; t++)
			if (threads >> t & 1)
				saturating_add(&by_thread_ns[t],
					       candidate->cost_ns / (uint64_t)count);
	}
	for (int t = 0; t < CALLSITES_THREADS; t++)
		longest_ns = larger(longest_ns, by_thread_ns[t]);
	return longest_ns;
}

static void add_costs(struct detection *detection, const struct rule_spec *rule)
{
	/* Gaps before the first of the steps do not count. */
	uint64_t limit_ns = rule->is_about_idle ? smaller(detection->idle_ns, detection->whole_ns)
						: detection->whole_ns;
	uint64_t sum_ns = 0;

	for (size_t c = 0; c < detection->candidate_count; c++)
		saturating_add(&sum_ns, detection->candidates[c].cost_ns);
	if (!detection->has_cost)
		detection->cost_ns = sum_ns;
	if (rule->is_thread_time) {
		detection->cost_ns /= detection->device_count;
		detection->cost_ns = smaller(detection->cost_ns, longest_ns(detection));
	}
	detection->cost_ns = smaller(detection->cost_ns, limit_ns);
	for (size_t c = 0; c < detection->candidate_count; c++)
		detection->candidates[c].cost_ns =
			scale_ns(detection->candidates[c].cost_ns, detection->cost_ns, sum_ns);
}

static void detect(struct detection *detection, const struct callsite_rule *rule)
{
	const struct callsites *callsites = detection->callsites;

	detection->candidate_count = 0;
	detection->cost_ns = 0;
	detection->has_cost = false;
	memset(detection->facts, 0, sizeof(detection->facts));
	memset(detection->words, 0, sizeof(detection->words));
	if (rule->prepare)
		rule->prepare(detection);
	for (uint32_t s = 1; s < callsites->count && rule->match; s++) {
		const struct callsite *callsite = &callsites->list[s];
		struct candidate candidate = {.callsite = s, .count = callsite->count};

		if (rule->match(detection, callsite, &candidate))
			detection_add(detection, candidate);
	}
	if (rule->finish)
		rule->finish(detection);
}

static void apply_rule(struct detection *detection, enum rule rule)
{
	const struct reading *reading = detection->reading;
	struct finding *finding;

	if (reading->gaps.is_blind && rule_specs[rule].is_about_idle)
		return;
	detect(detection, &callsite_rules[rule]);
	add_costs(detection, &rule_specs[rule]);
	if (!detection->candidate_count)
		return;
	finding = finding_add(reading->run, rule, reading->process.index, detection->cost_ns,
			      detection->whole_ns);
	if (finding || rule_reaches(rule, rule_specs[rule].share_percent, detection->cost_ns,
				    detection->whole_ns))
		mark_explained(detection, rule);
	if (!finding)
		return;
	finding->step_count = detection->step_count;
	detection_add_places(detection, finding);
	if (callsite_rules[rule].explain)
		callsite_rules[rule].explain(detection, finding);
	detection_describe(detection, &callsite_rules[rule], finding);
}

/* Whether the steps after the warm-up have most of the GPU time. */
static bool has_mostly_steps(const struct aggregate *totals)
{
	uint64_t all_ns = 0, steady_ns = 0;

	for (uint32_t t = 0; t < totals->count; t++) {
		uint64_t ns = totals->entries[t].weights[WEIGHT_GPU_TIME];

		saturating_add(&all_ns, ns);
		if (totals->entries[t].owner.marks & OWNER_STEADY)
			saturating_add(&steady_ns, ns);
	}
	return steady_ns > all_ns / 2;
}

/*
 * Judges the steps after the warm-up if they are most of the run: a start-up or warm-up has
 * problems of its own, which the steps do not pay for.
 */
static void choose_steps(struct detection *detection)
{
	struct reading *reading = detection->reading;
	struct step_sums steps = {0};
	uint64_t device_count = steps_of_log(reading->run, &steps);

	/* The report has no steps for a part of the call paths. */
	if (wanted_has_patterns(&reading->run->settings->wanted) || !steps.wall_ns ||
	    !reading->sums.steady.device_count || !has_mostly_steps(&reading->aggregate))
		return;
	/* If the CPU runs far ahead, work of many steps runs at once. */
	if (steps.wall_ns / device_count / 2 > reading->plan.steady_ns)
		return;
	detection->callsites = &reading->sums.steady;
	detection->device_count = device_count;
	detection->whole_ns = steps.wall_ns / device_count;
	detection->step_count = steps.count / device_count;
	detection->idle_ns = step_idle_ns(steps.parts_ns) / device_count;
	detection->step_idle_ns = steps_idle_of_log(reading->run, reading->aggregate.count);
	callsites_finish(detection->callsites, &reading->aggregate, OWNER_STEADY);
}

static void note_steps(struct findings *findings, const struct detection *detection)
{
	if (!detection->step_count)
		return;
	findings->step_process_count++;
	saturating_add(&findings->step_count, detection->step_count);
	saturating_add(&findings->steps_ns, detection->whole_ns);
}

/* Errors matter wherever they occur. */
static void apply_rules(struct detection *detection, bool are_errors)
{
	for (int rule = 0; rule < RULE_CPU_FIRST; rule++)
		if (rule_specs[rule].is_error == are_errors)
			apply_rule(detection, (enum rule)rule);
}

void findings_detect(struct reading *reading)
{
	struct callsites *callsites = &reading->sums.callsites;
	uint64_t device_count = larger(callsites->device_count, (size_t)1);
	struct detection detection = {
		.reading = reading, .idle_ns = UINT64_MAX, .device_count = device_count};

	if (!callsites->by_stack || callsites->first_ns >= callsites->last_ns)
		return;
	detection.callsites = callsites;
	detection.whole_ns = callsites_active_ns(callsites);
	callsites_finish(callsites, &reading->aggregate, 0);
	apply_rules(&detection, true);
	choose_steps(&detection);
	note_steps(&reading->run->found->findings, &detection);
	apply_rules(&detection, false);
	if (!reading->gaps.is_blind)
		cpu_findings_detect(&detection);
	if (!reading->gaps.is_blind && detection.step_count) {
		/* Causes outside the steps, such as compilation, delay the run as a whole. */
		detection.step_count = 0;
		detection.is_outside = true;
		detection.device_count = device_count;
		cpu_findings_detect(&detection);
	}
	if (reading->process.process_count > 1)
		findings_note_devices(&detection);
	free_all(detection.candidates, detection.step_idle_ns);
}

static bool is_same(const struct finding *a, const struct finding *b)
{
	return a->rule == b->rule && !a->step_count == !b->step_count &&
	       a->is_outside == b->is_outside &&
	       finding_is_same_place(&a->places[0], &b->places[0]);
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	const struct rule_spec *x_rule = &rule_specs[x->rule], *y_rule = &rule_specs[y->rule];

	if (x_rule->is_urgent != y_rule->is_urgent)
		return x_rule->is_urgent ? -1 : 1;
	if (x_rule->is_error != y_rule->is_error)
		return x_rule->is_error ? -1 : 1;
	/* Each step pays again. */
	if (x->is_outside != y->is_outside)
		return x->is_outside ? 1 : -1;
	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* Keep the more expensive finding for both. */
static void merge_into(struct finding *into, struct finding *other)
{
	saturating_add(&into->cost_ns, other->cost_ns);
	saturating_add(&into->whole_ns, other->whole_ns);
	/* Without steps in all of them, the cost of a step has no meaning. */
	into->step_count =
		other->step_count && into->step_count ? into->step_count + other->step_count : 0;
	into->process_count += other->process_count;
	finding_free(other);
}

/* Text, evidence and places are those of one process. Add the sums of all. */
static void describe_processes(struct finding *finding)
{
	char *text;

	text = xt_asprintf(
		"%s These numbers are for %s. For all %u processes with this finding, the cost "
		"is %s, %s of their %s%s.",
		finding->what, finding->process, finding->process_count, finding_cost(finding),
		finding_share(finding), finding->rule < RULE_CPU_FIRST ? "" : "time ",
		finding_whole_text(finding));
	free(finding->what);
	finding->what = text;
}

void findings_finish(struct run *run)
{
	struct findings *findings = &run->found->findings;
	size_t kept = 0;

	findings_compare_devices(run);
	findings_compare_ranks(run);
	SORT(findings->list, findings->count, compare_findings);
	for (size_t f = 0; f < findings->count; f++) {
		size_t k = 0;

		while (k < kept && !is_same(&findings->list[k], &findings->list[f]))
			k++;
		if (k < kept) {
			merge_into(&findings->list[k], &findings->list[f]);
		} else {
			struct finding finding = findings->list[f];

			findings->list[f] = (struct finding){0};
			findings->list[kept++] = finding;
		}
	}
	findings->count = kept;
	for (size_t f = 0; f < kept; f++)
		if (findings->list[f].process_count > 1)
			describe_processes(&findings->list[f]);
	SORT(findings->list, kept, compare_findings);
}

void findings_free(struct findings *findings)
{
	for (size_t f = 0; f < findings->count; f++)
		finding_free(&findings->list[f]);
	free(findings->list);
	for (size_t d = 0; d < findings->device_count; d++)
		free_all(findings->devices[d].program, findings->devices[d].uuid,
			 findings->devices[d].place.frames);
	free(findings->devices);
	*findings = (struct findings){0};
}

static const struct column_def columns[] = {
	COLUMN("rule", WORD, OTHER, "rule that found it"),
	COLUMN("severity", WORD, OTHER, "error, high, medium or low"),
	COLUMN("cost_ns", NS, FROM(finding, cost_ns), "time that could be saved"),
	COLUMN("whole_ns", NS, FROM(finding, whole_ns), "time that the cost is a part of"),
	COLUMN("step_ns", NS, OTHER, "cost of each step, if it is of several steps", OPTIONAL),
	COLUMN("process_count", COUNT, FROM(finding, process_count), "processes that have it"),
	COLUMN("process", TEXT, FROM(finding, process),
	       "one of them, with the evidence and the places"),
	COLUMN("id", TEXT, OTHER,
	       "rule and place, and whether it is outside the steps; the same in every run"),
	COLUMN("where", TEXT, OTHER, "function and line"),
	COLUMN("what", TEXT, OTHER, "what was found"),
	COLUMN("advice", TEXT, FROM(finding, advice), "what to try"),
	COLUMN("whole", TEXT, OTHER, "what `whole_ns` is, as in `active time`"),
	COLUMN("estimate", TEXT, OTHER, "how the cost was estimated"),
};

OPEN_LIST(open_rows, rows->run->found->findings)

static void findings_put_row(struct table_rows *rows, struct cells *cells)
{
	const struct finding *finding = rows->record;
	const struct paths *paths = &rows->run->paths;

	cells_put(cells, cell_text(rule_specs[finding->rule].name));
	cells_put(cells, cell_text(finding_severity(finding)));
	cells_put(cells, cell_known(finding->step_count && !finding_only_step(rows->run, finding),
				    finding_step_ns(finding)));
	cells_put(cells, cell_owned(rows, finding_id(paths, finding)));
	cells_put(cells, cell_owned(rows, finding_where(rows->run, finding)));
	cells_put(cells, cell_owned(rows, finding_what(rows->run, finding)));
	cells_put(cells, cell_text(finding_whole_text(finding)));
	cells_put(cells, cell_text(rule_specs[finding->rule].estimate));
}

static void put_frame(struct json *json, const struct run *run, const struct finding_frame *frame)
{
	json_name(json, "function", &run->paths.names, frame->name);
	if (frame->file == NAME_EMPTY || !frame->line)
		return;
	json_name(json, "file", &run->paths.names, frame->file);
	json_u64(json, "line", frame->line);
}

static void put_place(struct json *json, const struct run *run, const struct finding_place *place)
{
	const struct cell path = cell_path(&run->paths, place->node);

	json_begin_object(json, NULL);
	json_u64(json, "cost_ns", place->cost_ns);
	json_u64(json, "path_cost_ns", place->path_cost_ns);
	json_u64(json, "count", place->count);
	json_name(json, "call", &run->paths.names, place->api);
	put_frame(json, run, &place->at);
	/* The exact path, so that the page can find its node. */
	table_put_json_path(json, "frames", &path);
	json_begin_array(json, "lines");
	for (size_t f = 0; f < place->frame_count; f++) {
		json_begin_object(json, NULL);
		put_frame(json, run, &place->frames[f]);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

static void put_rule_count(struct json *json, const struct run *run)
{
	uint64_t rule_count = 0;

	for (int rule = 0; rule < RULES; rule++)
		rule_count += run->settings->finding_shares[rule] >= 0 &&
			      (rule < RULE_CPU_FIRST || run->cpu->facts.process_count);
	json_u64(json, "rule_count", rule_count);
}

static void put_evidence(struct json *json, const struct table_rows *rows)
{
	const struct finding *finding = rows->record;

	json_begin_object(json, "evidence");
	for (size_t e = 0; e < finding->evidence.count; e++)
		json_u64(json, finding->evidence.list[e].name, finding->evidence.list[e].value);
	json_end_object(json);
	json_u64(json, "place_count", finding->place_all_count);
	json_begin_array(json, "places");
	for (size_t p = 0; p < finding->place_count; p++)
		put_place(json, rows->run, &finding->places[p]);
	json_end_array(json);
}

const struct table_def table_findings = {
	.name = "findings",
	.title = "Findings",
	.what = "Problems that cost time: those of steps before those outside, largest cost first.",
	HAS_COLUMNS(columns),
	.open = open_rows,
	.row = findings_put_row,
	.json.is_complete = true,
	.json.head = put_rule_count,
	.json.more = put_evidence,
};
