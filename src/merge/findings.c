/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of rules, and what becomes of what they find.
 */
#include "merge/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/findings_place.h"
#include "merge/findings_rules.h"
#include "merge/grow.h"

#define COST_LEAST_NS 1000000 /* what costs less is not spoken of, whatever the share */

#define ALL_RULES   "all"
#define USAGE_BYTES 512

#define SHARE_HIGH   4 /* a fourth of the run … */
#define SHARE_MEDIUM 10

/* docs/FINDINGS.md says what each stands for, and how it can be wrong. */
const struct rule_spec rule_specs[RULES] = {
	[RULE_API_ERRORS] = {"api-errors", 0, "time in the calls that failed", true,
			     look_api_errors, tell_api_errors},
	[RULE_MODULE_LOADS] = {"module-loads", 5, "time in the calls that load", false,
			       look_module_loads, tell_module_loads},
	[RULE_ALLOC_LOOP] = {"alloc-loop", 5, "time in the calls that allocate and free again",
			     false, look_alloc_loop, tell_alloc_loop},
	[RULE_SMALL_COPIES] = {"small-copies", 5,
			       "time of the copies but for the first of each row", false,
			       look_small_copies, tell_small_copies},
	[RULE_PAGEABLE_ASYNC] = {"pageable-async", 10,
				 "time for which the calls held their thread up", false,
				 look_pageable_async, tell_pageable_async},
	[RULE_LOW_BANDWIDTH] = {"low-bandwidth", 10, "time beyond that of 25 GB/s", false,
				look_low_bandwidth, tell_low_bandwidth},
	[RULE_SYNC_IDLE] = {"sync-idle", 10, "time for which the GPU was idle around the waits",
			    false, look_sync_idle, tell_sync_idle},
	[RULE_SHORT_KERNELS] = {"short-kernels", 15,
				"time for which the GPU waited for these launches", false,
				look_short_kernels, tell_short_kernels},
	[RULE_SERIAL_STREAMS] = {"serial-streams", 15,
				 "time for which kernels waited for other streams", false,
				 look_serial_streams, tell_serial_streams},
	[RULE_STREAM_IMBALANCE] = {"stream-imbalance", 15,
				   "time of the busiest stream beyond the mean", false,
				   look_stream_imbalance, tell_stream_imbalance},
	[RULE_DEVICE_IMBALANCE] = {"device-imbalance", 15,
				   "time of the busiest device beyond the mean", false,
				   look_device_imbalance, tell_device_imbalance},
	[RULE_SMALL_GRIDS] = {"small-grids", 15, "time that a full device would need less, at most",
			      false, look_small_grids, tell_small_grids},
	[RULE_COPY_SHARE] = {"copy-share", 20, "time in which copies ran and no kernel", false,
			     look_copy_share, tell_copy_share},
	[RULE_GPU_IDLE] = {"gpu-idle", 25, "idle time of that kind, but for the longest gaps",
			   false, look_gpu_idle, tell_gpu_idle},
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
	share = !strcmp(equals + 1, "off") ? -1 : strtod(equals + 1, &end);
	if (share >= 0 && (equals[1] < '0' || equals[1] > '9' || *end || share > 100))
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

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

bool finding_is_enough(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		       uint64_t whole_ns)
{
	const struct rule_spec *spec = &rule_specs[rule];
	double share = settings->finding_shares[rule];

	if (share < 0)
		return false;
	if (share == 0)
		share = spec->share_percent;
	return spec->is_error ||
	       (cost_ns >= COST_LEAST_NS && (double)cost_ns * 100 >= (double)whole_ns * share);
}

static void free_finding(struct finding *finding)
{
	for (size_t p = 0; p < finding->place_count; p++)
		free(finding->places[p].frames);
	free(finding->process);
	free(finding->what);
	*finding = (struct finding){0};
}

static int find(struct looking *looking, struct finding *finding)
{
	struct reading *reading = looking->reading;
	struct sites *sites = looking->sites;
	size_t wanted = looking->candidate_count < FINDING_PLACES_MAX ? looking->candidate_count
								      : FINDING_PLACES_MAX;
	int error = 0;

	qsort(looking->candidates, looking->candidate_count, sizeof(*looking->candidates),
	      compare_candidates);
	finding->process = strdup(reading->process.label);
	finding->process_count = 1;
	finding->cost_ns =
		looking->cost_ns < looking->whole_ns ? looking->cost_ns : looking->whole_ns;
	finding->whole_ns = looking->whole_ns;
	finding->place_all_count = looking->candidate_count;
	for (size_t c = 0; c < wanted && !error; c++) {
		const struct candidate *candidate = &looking->candidates[c];

		error = finding_place(reading, &sites->list[candidate->site],
				      &finding->places[finding->place_count++]);
		finding->places[c].cost_ns = candidate->cost_ns;
		finding->places[c].count = candidate->count;
	}
	if (error || !finding->process)
		return -ENOMEM;
	for (size_t c = 0; c < looking->candidate_count; c++)
		sites->list[looking->candidates[c].site].is_claimed = true;
	rule_specs[finding->rule].tell(looking, finding);
	return finding->what ? 0 : -ENOMEM;
}

static void add_costs(struct looking *looking)
{
	for (size_t c = 0; c < looking->candidate_count; c++)
		looking->cost_ns += looking->candidates[c].cost_ns;
}

static int apply_rule(struct looking *looking, enum rule rule)
{
	struct findings *findings = &looking->reading->run->findings;
	struct finding finding = {.rule = rule};
	int error;

	looking->candidate_count = 0;
	looking->cost_ns = 0;
	memset(looking->facts, 0, sizeof(looking->facts));
	error = rule_specs[rule].look(looking);
	if (!looking->cost_ns)
		add_costs(looking);
	if (error || !looking->candidate_count ||
	    !finding_is_enough(looking->reading->run->settings, rule, looking->cost_ns,
			       looking->whole_ns))
		return error;
	error = find(looking, &finding);
	if (!error)
		error = grow(&findings->list, &findings->capacity, findings->count + 1,
			     sizeof(*findings->list));
	if (error)
		free_finding(&finding);
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
	uint64_t cost_ns = into->cost_ns + other->cost_ns;
	uint64_t whole_ns = into->whole_ns + other->whole_ns;
	uint32_t process_count = into->process_count + other->process_count;

	free_finding(other);
	into->cost_ns = cost_ns;
	into->whole_ns = whole_ns;
	into->process_count = process_count;
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
	if (kept)
		qsort(findings->list, kept, sizeof(*findings->list), compare_findings);
	return error;
}

void findings_free(struct findings *findings)
{
	for (size_t f = 0; f < findings->count; f++)
		free_finding(&findings->list[f]);
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
