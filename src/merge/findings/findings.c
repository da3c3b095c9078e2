/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the rules and collects their findings.
 */
#include "merge/findings/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/findings/conclusions.h"
#include "merge/findings/finding_place.h"
#include "merge/findings/detection.h"
#include "merge/findings/group_places.h"
#include "merge/findings/rules_balance.h"
#include "merge/findings/rules_calls.h"
#include "merge/findings/rules_copies.h"
#include "merge/findings/rules_cpu.h"
#include "merge/findings/rules_idle.h"
#include "merge/findings/rules_processes.h"
#include "merge/findings/rules_ranks.h"
#include "merge/sums/reading.h"

/* docs/FINDINGS.md says what each rule means, and how it can be wrong. */
static const struct rule_functions {
	void (*detect)(struct detection *detection);
	void (*describe)(const struct detection *detection, struct finding *finding);
} rule_functions[RULES] = {
	[RULE_API_ERRORS] = {detect_api_errors, describe_api_errors},
	[RULE_MODULE_LOADS] = {detect_module_loads, describe_module_loads},
	[RULE_ALLOC_LOOP] = {detect_alloc_loop, describe_alloc_loop},
	[RULE_SMALL_COPIES] = {detect_small_copies, describe_small_copies},
	[RULE_PAGEABLE_ASYNC] = {detect_pageable_async, describe_pageable_async},
	[RULE_LOW_BANDWIDTH] = {detect_low_bandwidth, describe_low_bandwidth},
	[RULE_SYNC_IDLE] = {detect_sync_idle, describe_sync_idle},
	[RULE_SHORT_KERNELS] = {detect_short_kernels, describe_short_kernels},
	[RULE_SERIAL_STREAMS] = {detect_serial_streams, describe_serial_streams},
	[RULE_STREAM_IMBALANCE] = {detect_stream_imbalance, describe_stream_imbalance},
	[RULE_DEVICE_IMBALANCE] = {detect_device_imbalance, describe_device_imbalance},
	[RULE_SMALL_GRIDS] = {detect_small_grids, describe_small_grids},
	[RULE_COPY_SHARE] = {detect_copy_share, describe_copy_share},
	[RULE_GPU_IDLE] = {detect_gpu_idle, describe_gpu_idle},
};

static void build_finding(struct detection *detection, struct finding *finding)
{
	finding->process = xt_strdup(detection->reading->process.label);
	finding->process_index = detection->reading->process.index;
	finding->process_count = 1;
	finding->cost_ns = detection->cost_ns;
	finding->whole_ns = detection->whole_ns;
	finding->advice = rule_specs[finding->rule].advice;
	finding_add_places(detection, finding);
	rule_functions[finding->rule].describe(detection, finding);
}

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
		if (by_thread_ns[t] > longest_ns)
			longest_ns = by_thread_ns[t];
	return longest_ns;
}

static void add_costs(struct detection *detection, bool is_thread_time)
{
	uint64_t sum_ns = 0, longest;

	for (size_t c = 0; c < detection->candidate_count; c++)
		saturating_add(&sum_ns, detection->candidates[c].cost_ns);
	if (!detection->has_cost)
		detection->cost_ns = sum_ns;
	if (is_thread_time) {
		longest = longest_ns(detection);
		detection->cost_ns /= detection->device_count;
		if (detection->cost_ns > longest)
			detection->cost_ns = longest;
	}
	if (detection->cost_ns > detection->whole_ns)
		detection->cost_ns = detection->whole_ns;
	for (size_t c = 0; c < detection->candidate_count; c++)
		detection->candidates[c].cost_ns =
			scale_ns(detection->candidates[c].cost_ns, detection->cost_ns, sum_ns);
}

static void apply_rule(struct detection *detection, enum rule rule)
{
	struct findings *findings = &detection->reading->run->found->findings;
	struct finding finding = {.rule = rule};
	bool is_reported;

	if (detection->reading->gaps.is_blind && rule_specs[rule].is_about_idle)
		return;
	detection->candidate_count = 0;
	detection->cost_ns = 0;
	detection->has_cost = false;
	memset(detection->facts, 0, sizeof(detection->facts));
	if (!rule_functions[rule].detect)
		return;
	rule_functions[rule].detect(detection);
	add_costs(detection, rule_specs[rule].is_thread_time);
	if (!detection->candidate_count)
		return;
	is_reported = rule_reports(detection->reading->run->settings, rule, detection->cost_ns,
				   detection->whole_ns);
	if (is_reported || rule_reaches(rule, rule_specs[rule].share_percent, detection->cost_ns,
					detection->whole_ns))
		mark_explained(detection, rule);
	if (!is_reported)
		return;
	build_finding(detection, &finding);
	xt_append(findings->list, findings->count, findings->capacity, finding);
}

void findings_detect(struct reading *reading)
{
	struct callsites *callsites = &reading->sums.callsites;
	struct detection detection = {.reading = reading, .callsites = callsites};

	if (!callsites->by_stack || callsites->first_ns >= callsites->last_ns)
		return;
	callsites_finish(callsites, &reading->aggregate);
	detection.whole_ns = callsites_active_ns(callsites);
	detection.device_count = callsites->device_count ? callsites->device_count : 1;
	for (int rule = 0; rule < RULE_CPU_FIRST; rule++)
		apply_rule(&detection, (enum rule)rule);
	if (!reading->gaps.is_blind)
		cpu_findings_detect(&detection);
	if (reading->process.process_count > 1)
		findings_note_devices(&detection);
	free(detection.candidates);
}

static bool is_same_place(const struct finding *a, const struct finding *b)
{
	const struct finding_place *x = &a->places[0], *y = &b->places[0];

	return a->rule == b->rule && x->function == y->function && x->file == y->file &&
	       x->line == y->line && x->api == y->api;
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	const struct rule_spec *x_rule = &rule_specs[x->rule], *y_rule = &rule_specs[y->rule];

	if (x_rule->is_urgent != y_rule->is_urgent)
		return x_rule->is_urgent ? -1 : 1;
	if (x_rule->is_error != y_rule->is_error)
		return x_rule->is_error ? -1 : 1;
	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* Keep the more expensive finding for both. */
static void merge_into(struct finding *into, struct finding *other)
{
	saturating_add(&into->cost_ns, other->cost_ns);
	saturating_add(&into->whole_ns, other->whole_ns);
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
	if (findings->count)
		qsort(findings->list, findings->count, sizeof(*findings->list), compare_findings);
	for (size_t f = 0; f < findings->count; f++) {
		size_t k = 0;

		while (k < kept && !is_same_place(&findings->list[k], &findings->list[f]))
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
	if (kept)
		qsort(findings->list, kept, sizeof(*findings->list), compare_findings);
}

void findings_free(struct findings *findings)
{
	for (size_t f = 0; f < findings->count; f++)
		finding_free(&findings->list[f]);
	free(findings->list);
	for (size_t d = 0; d < findings->device_count; d++) {
		struct finding_device *device = &findings->devices[d];

		free_all(device->program, device->process, device->name, device->uuid,
			 device->place.frames);
	}
	free(findings->devices);
	*findings = (struct findings){0};
}
