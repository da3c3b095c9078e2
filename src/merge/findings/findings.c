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

#define COST_LEAST_NS 1000000 /* what costs less is not spoken of, whatever the share */

#define ALL_RULES   "all"
#define USAGE_BYTES 512

#define SHARE_HIGH   4 /* a fourth of the run … */
#define SHARE_MEDIUM 10

/* docs/FINDINGS.md says what each stands for, and how it can be wrong. */
const struct rule_spec rule_specs[RULES] = {
	[RULE_API_ERRORS] = {.name = "api-errors",
			     .estimate = "time in the calls that failed",
			     .is_error = true,
			     .is_of_threads = true,
			     .look = look_api_errors,
			     .tell = tell_api_errors},
	[RULE_MODULE_LOADS] = {.name = "module-loads",
			       .share_percent = 5,
			       .estimate = "time in the calls that load",
			       .is_of_threads = true,
			       .look = look_module_loads,
			       .tell = tell_module_loads},
	[RULE_ALLOC_LOOP] = {.name = "alloc-loop",
			     .share_percent = 5,
			     .estimate = "time in the calls that allocate and free again",
			     .is_of_threads = true,
			     .look = look_alloc_loop,
			     .tell = tell_alloc_loop},
	[RULE_SMALL_COPIES] = {.name = "small-copies",
			       .share_percent = 5,
			       .estimate = "time of the copies but for the first of each row",
			       .is_of_threads = true,
			       .look = look_small_copies,
			       .tell = tell_small_copies},
	[RULE_PAGEABLE_ASYNC] = {.name = "pageable-async",
				 .share_percent = 10,
				 .estimate = "time for which the calls held their thread up",
				 .is_of_threads = true,
				 .look = look_pageable_async,
				 .tell = tell_pageable_async},
	[RULE_LOW_BANDWIDTH] = {.name = "low-bandwidth",
				.share_percent = 10,
				.estimate = "time beyond that of 25 GB/s",
				.look = look_low_bandwidth,
				.tell = tell_low_bandwidth},
	[RULE_SYNC_IDLE] = {.name = "sync-idle",
			    .share_percent = 10,
			    .estimate = "time for which the GPU was idle around the waits",
			    .is_of_idle = true,
			    .look = look_sync_idle,
			    .tell = tell_sync_idle},
	[RULE_SHORT_KERNELS] = {.name = "short-kernels",
				.share_percent = 15,
				.estimate = "time for which the GPU waited for these launches",
				.is_of_idle = true,
				.look = look_short_kernels,
				.tell = tell_short_kernels},
	[RULE_SERIAL_STREAMS] = {.name = "serial-streams",
				 .share_percent = 15,
				 .estimate = "time for which kernels waited for other streams",
				 .look = look_serial_streams,
				 .tell = tell_serial_streams},
	[RULE_STREAM_IMBALANCE] = {.name = "stream-imbalance",
				   .share_percent = 15,
				   .estimate = "time of the busiest stream beyond the mean",
				   .look = look_stream_imbalance,
				   .tell = tell_stream_imbalance},
	[RULE_DEVICE_IMBALANCE] = {.name = "device-imbalance",
				   .share_percent = 15,
				   .estimate = "time of the busiest device beyond the mean",
				   .look = look_device_imbalance,
				   .tell = tell_device_imbalance},
	[RULE_SMALL_GRIDS] = {.name = "small-grids",
			      .share_percent = 15,
			      .estimate = "time that a full device would need less, at most",
			      .look = look_small_grids,
			      .tell = tell_small_grids},
	[RULE_COPY_SHARE] = {.name = "copy-share",
			     .share_percent = 20,
			     .estimate = "time in which copies ran and no kernel",
			     .look = look_copy_share,
			     .tell = tell_copy_share},
	[RULE_GPU_IDLE] = {.name = "gpu-idle",
			   .share_percent = 25,
			   .estimate = "idle time of that kind, but for the longest gaps",
			   .is_of_idle = true,
			   .look = look_gpu_idle,
			   .tell = tell_gpu_idle},
};

const char *finding_rule_name(enum rule rule)
{
	return rule < RULES ? rule_specs[rule].name : NULL;
}

const char *finding_estimate(enum rule rule)
{
	return rule_specs[rule].estimate;
}

const char *finding_severity(const struct finding *finding)
{
	if (rule_specs[finding->rule].is_error)
		return "error";
	if (finding->cost_ns >= finding->whole_ns / SHARE_HIGH)
		return "high";
	return finding->cost_ns >= finding->whole_ns / SHARE_MEDIUM ? "medium" : "low";
}

const char *finding_usage(void)
{
	static char text[USAGE_BYTES];
	size_t length =
		(size_t)snprintf(text, sizeof(text),
				 "a rule, '=' and a share of the time at work from 0 to 100, or "
				 "off; the rules are all,");

	for (int rule = 0; rule < RULES && length < sizeof(text); rule++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
					   rule ? ", " : " ", rule_specs[rule].name);
	return text;
}

/* Is the rule meant by the name, which is not terminated? */
static bool is_meant(int rule, const char *name, size_t length)
{
	const char *own = rule_specs[rule].name;

	return (length == strlen(ALL_RULES) && !memcmp(name, ALL_RULES, length)) ||
	       (length == strlen(own) && !memcmp(name, own, length));
}

int finding_parse(double shares[RULES], const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	double share;
	char *end;
	int meant = 0;

	if (!equals)
		return -EINVAL;
	share = strtod(equals + 1, &end);
	if (!strcmp(equals + 1, "off"))
		share = -1;
	else if (equals[1] < '0' || equals[1] > '9' || *end || !(share <= 100))
		return -EINVAL;
	for (int rule = 0; rule < RULES; rule++) {
		if (!is_meant(rule, text, length))
			continue;
		shares[rule] = share == 0 ? 1e-9 : share;
		meant++;
	}
	return meant ? 0 : -EINVAL;
}

bool finding_wanted(const double shares[RULES])
{
	for (int rule = 0; rule < RULES; rule++)
		if (shares[rule] >= 0)
			return true;
	return false;
}

int looking_add(struct looking *looking, uint32_t site, uint64_t cost_ns, uint64_t count)
{
	if (grow(&looking->candidates, &looking->candidate_capacity, looking->candidate_count + 1,
		 sizeof(*looking->candidates)) < 0)
		return -ENOMEM;
	looking->candidates[looking->candidate_count++] =
		(struct candidate){.site = site, .cost_ns = cost_ns, .count = count};
	return 0;
}

void looking_cost(struct looking *looking, uint64_t cost_ns)
{
	looking->cost_ns = cost_ns;
	looking->has_cost = true;
}

void finding_say(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	free(finding->what);
	if (vasprintf(&finding->what, format, arguments) < 0)
		finding->what = NULL;
	va_end(arguments);
}

void finding_prove(struct finding *finding, const char *name, uint64_t value)
{
	if (finding->evidence_count == FINDING_EVIDENCE_MAX)
		return;
	finding->evidence[finding->evidence_count].name = name;
	finding->evidence[finding->evidence_count++].value = value;
}

static bool is_enough(enum rule rule, double share, uint64_t cost_ns, uint64_t whole_ns)
{
	return rule_specs[rule].is_error ||
	       (cost_ns >= COST_LEAST_NS && (double)cost_ns * 100 >= (double)whole_ns * share);
}

bool finding_is_enough(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		       uint64_t whole_ns)
{
	double share = settings->finding_shares[rule];

	return share >= 0 &&
	       is_enough(rule, share ? share : rule_specs[rule].share_percent, cost_ns, whole_ns);
}

void finding_free(struct finding *finding)
{
	for (size_t p = 0; p < finding->place_count; p++)
		free(finding->places[p].frames);
	free(finding->process);
	free(finding->what);
	*finding = (struct finding){0};
}

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
	rule_specs[finding->rule].tell(looking, finding);
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
	error = rule_specs[rule].look(looking);
	add_costs(looking, rule_specs[rule].is_of_threads);
	if (error || !looking->candidate_count)
		return error;
	is_told = finding_is_enough(looking->reading->run->settings, rule, looking->cost_ns,
				    looking->whole_ns);
	if (is_told ||
	    is_enough(rule, rule_specs[rule].share_percent, looking->cost_ns, looking->whole_ns))
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
	sites_finish(sites, &reading->totals);
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
