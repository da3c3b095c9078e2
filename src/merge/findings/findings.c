/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of rules, and what becomes of what they find.
 */
#include "merge/findings/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/grow.h"
#include "merge/findings/findings_place.h"
#include "merge/findings/findings_rules.h"
#include "merge/findings/findings_balance.h"
#include "merge/findings/findings_calls.h"
#include "merge/findings/findings_copies.h"
#include "merge/findings/findings_idle.h"
#include "merge/findings/findings_processes.h"

/* docs/FINDINGS.md says what each rule means, and how it can be wrong. */
static const struct rule_functions {
	int (*detect)(struct looking *looking);
	void (*describe)(const struct looking *looking, struct finding *finding);
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

static int find(struct looking *looking, struct finding *finding)
{
	int error;

	finding->process = strdup(looking->reading->process.label);
	finding->process_index = looking->reading->process.index;
	finding->process_count = 1;
	finding->cost_ns = looking->cost_ns;
	finding->whole_ns = looking->whole_ns;
	error = finding_add_places(looking, finding);
	if (error || !finding->process)
		return -ENOMEM;
	rule_functions[finding->rule].describe(looking, finding);
	return finding->what ? 0 : -ENOMEM;
}

/* What is found explains idle time, whether the user wants to know of it or not. */
static void claim(struct looking *looking, enum rule rule)
{
	uint64_t threads = 0;

	if (rule_specs[rule].is_error)
		return;
	for (size_t c = 0; c < looking->candidate_count; c++) {
		looking->sites->list[looking->candidates[c].site].is_claimed = true;
		threads |= looking->sites->list[looking->candidates[c].site].threads;
	}
	/* (Their time is that of the frees, too.) */
	for (uint32_t s = 1; s < looking->sites->count && rule == RULE_ALLOC_LOOP; s++)
		if (looking->sites->list[s].class == XT_API_FREE &&
		    !looking->sites->list[s].is_async && looking->sites->list[s].threads & threads)
			looking->sites->list[s].is_claimed = true;
}

/* Time of threads passes on all of them at once: it is that of the one which lost most. What a site
 * costs is spread over those that call there. */
static uint64_t longest_ns(const struct looking *looking)
{
	uint64_t by_thread_ns[SITES_THREADS] = {0}, longest_ns = 0;

	for (size_t c = 0; c < looking->candidate_count; c++) {
		const struct candidate *candidate = &looking->candidates[c];
		uint64_t threads = looking->sites->list[candidate->site].threads;
		int count = __builtin_popcountll(threads);

		for (int t = 0; t < SITES_THREADS; t++)
			if (threads >> t & 1)
				sites_add(&by_thread_ns[t], candidate->cost_ns / (uint64_t)count);
	}
	for (int t = 0; t < SITES_THREADS; t++)
		if (by_thread_ns[t] > longest_ns)
			longest_ns = by_thread_ns[t];
	return longest_ns;
}

static void add_costs(struct looking *looking, bool is_of_threads)
{
	uint64_t sum_ns = 0, longest;

	for (size_t c = 0; c < looking->candidate_count; c++)
		sites_add(&sum_ns, looking->candidates[c].cost_ns);
	if (!looking->has_cost)
		looking->cost_ns = sum_ns;
	if (is_of_threads) {
		longest = longest_ns(looking);
		looking->cost_ns /= looking->device_count;
		if (looking->cost_ns > longest)
			looking->cost_ns = longest;
	}
	if (looking->cost_ns > looking->whole_ns)
		looking->cost_ns = looking->whole_ns;
	for (size_t c = 0; c < looking->candidate_count; c++)
		looking->candidates[c].cost_ns =
			sites_part(looking->candidates[c].cost_ns, looking->cost_ns, sum_ns);
}

static int apply_rule(struct looking *looking, enum rule rule)
{
	struct findings *findings = &looking->reading->run->findings;
	struct finding finding = {.rule = rule};
	bool is_told;
	int error;

	if (looking->reading->is_blind && rule_specs[rule].is_of_idle)
		return 0;
	looking->candidate_count = 0;
	looking->cost_ns = 0;
	looking->has_cost = false;
	memset(looking->facts, 0, sizeof(looking->facts));
	error = rule_functions[rule].detect(looking);
	add_costs(looking, rule_specs[rule].is_of_threads);
	if (error || !looking->candidate_count)
		return error;
	is_told = finding_is_enough(looking->reading->run->settings, rule, looking->cost_ns,
				    looking->whole_ns);
	if (is_told ||
	    rule_is_met(rule, rule_specs[rule].share_percent, looking->cost_ns, looking->whole_ns))
		claim(looking, rule);
	if (!is_told)
		return 0;
	error = find(looking, &finding);
	if (!error)
		error = grow(&findings->list, &findings->capacity, findings->count + 1,
			     sizeof(*findings->list));
	if (error)
		finding_free(&finding);
	else
		findings->list[findings->count++] = finding;
	return error;
}

int findings_look(struct reading *reading)
{
	struct sites *sites = &reading->sites;
	struct looking looking = {.reading = reading, .sites = sites};
	int error = sites->error;

	if (!sites->by_stack || sites->first_ns >= sites->last_ns)
		return error;
	sites_finish(sites, &reading->aggregate);
	looking.whole_ns = sites_whole_ns(sites);
	looking.device_count = sites->device_count ? sites->device_count : 1;
	for (int rule = 0; rule < RULES && !error; rule++)
		error = apply_rule(&looking, (enum rule)rule);
	if (!error && reading->process.process_count > 1)
		error = findings_note_devices(&looking);
	free(looking.candidates);
	return error;
}

static bool is_alike(const struct finding *a, const struct finding *b)
{
	const struct finding_place *x = &a->places[0], *y = &b->places[0];

	return a->rule == b->rule && x->function == y->function && x->file == y->file &&
	       x->line == y->line && x->api == y->api;
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	bool x_error = rule_specs[x->rule].is_error, y_error = rule_specs[y->rule].is_error;

	if (x_error != y_error)
		return x_error ? -1 : 1;
	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* The costlier one stands for both. */
static void join(struct finding *into, struct finding *other)
{
	sites_add(&into->cost_ns, other->cost_ns);
	sites_add(&into->whole_ns, other->whole_ns);
	into->process_count += other->process_count;
	finding_free(other);
}

/* The sentence, the evidence and the places are of one of the processes; the sums are of all. 0 or -ENOMEM. */
static int say_whose(struct finding *finding)
{
	char time[TIME_BYTES], *text;

	format_time(time, finding->cost_ns);
	if (asprintf(&text,
		     "%s That is %s; in all %u processes that do so it is %s, %s of their time at "
		     "work.",
		     finding->what, finding->process, finding->process_count, time,
		     finding_share(finding->cost_ns, finding->whole_ns)) < 0)
		return -ENOMEM;
	free(finding->what);
	finding->what = text;
	return 0;
}

int findings_finish(struct run *run)
{
	struct findings *findings = &run->findings;
	size_t kept = 0;
	int error = findings_compare_devices(run);

	if (findings->count)
		qsort(findings->list, findings->count, sizeof(*findings->list), compare_findings);
	for (size_t f = 0; f < findings->count; f++) {
		size_t k = 0;

		while (k < kept && !is_alike(&findings->list[k], &findings->list[f]))
			k++;
		if (k < kept) {
			join(&findings->list[k], &findings->list[f]);
		} else {
			struct finding finding = findings->list[f];

			findings->list[f] = (struct finding){0};
			findings->list[kept++] = finding;
		}
	}
	findings->count = kept;
	for (size_t f = 0; f < kept && !error; f++)
		if (findings->list[f].process_count > 1)
			error = say_whose(&findings->list[f]);
	if (kept)
		qsort(findings->list, kept, sizeof(*findings->list), compare_findings);
	return error;
}

void findings_free(struct findings *findings)
{
	for (size_t f = 0; f < findings->count; f++)
		finding_free(&findings->list[f]);
	free(findings->list);
	for (size_t d = 0; d < findings->device_count; d++) {
		struct finding_device *device = &findings->devices[d];

		free(device->program);
		free(device->process);
		free(device->name);
		free(device->uuid);
		free(device->place.frames);
	}
	free(findings->devices);
	*findings = (struct findings){0};
}
