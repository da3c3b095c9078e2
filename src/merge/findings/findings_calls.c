/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about calls that should not be made so: that fail, that load code again and again, that
 * allocate in a loop.
 */
#include "merge/findings/findings_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"

#define LOADS_LEAST  8	/* with work in between */
#define ALLOCS_LEAST 16 /* with frees in between */

static const uint32_t classes_that_matter =
	1u << XT_API_LAUNCH | 1u << XT_API_GRAPH_LAUNCH | 1u << XT_API_COPY | 1u << XT_API_SET |
	1u << XT_API_ALLOC | 1u << XT_API_FREE | 1u << XT_API_SYNC | 1u << XT_API_MODULE;

int detect_api_errors(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->failed_count && classes_that_matter >> site->class & 1)
			error = looking_add(
				looking, s,
				sites_part(site->time_ns, site->failed_count, site->count),
				site->failed_count);
	}
	return error;
}

void describe_api_errors(const struct looking *looking, struct finding *finding)
{
	const struct site *site = &looking->sites->list[looking->candidates[0].site];
	const char *name = error_label(site->last_result);
	char *where = finding_where(&looking->reading->run->paths, finding), others[64] = "";
	uint64_t failed_count = 0;

	for (size_t c = 0; c < looking->candidate_count; c++)
		failed_count += looking->candidates[c].count;
	if (looking->candidate_count > 1)
		snprintf(others, sizeof(others), " Calls fail in %zu other place%s, too.",
			 looking->candidate_count - 1, looking->candidate_count > 2 ? "s" : "");
	finding_say(finding,
		    "%s fails with %s (%" PRIu64 "), %" PRIu64 " of %" PRIu64 " times in %s.%s",
		    finding_api(looking, finding), name ? name : "error", site->last_result,
		    site->failed_count, site->count, where ? where : "?", others);
	free(where);
	finding->advice = "Look at what the call returns, and why it fails there: what comes after "
			  "it works with what it did not do.";
	finding_prove(finding, "failed_count", failed_count);
	finding_prove(finding, "call_count", site->count);
	finding_prove(finding, "error", site->last_result);
}

int detect_module_loads(struct looking *looking)
{
	const struct model *model = looking->reading->model;
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];
		const char *name =
			names_text(&model->names, model->apis.rows[site->api].name, NULL);

		if (site->class == XT_API_MODULE && site->after_work_count >= LOADS_LEAST &&
		    !strstr(name, "Unload"))
			error = looking_add(looking, s, site->time_ns, site->count);
	}
	return error;
}

void describe_module_loads(const struct looking *looking, struct finding *finding)
{
	uint64_t count = 0, ns = 0;
	char time[TIME_BYTES];

	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s loads code while work is under way, %s, which takes %s, %s of the time at "
		    "work.",
		    finding_api(looking, finding), finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Load each module once, before the loop, and keep it; of PTX, let the "
			  "driver's cache keep what it compiled, or ship code for the GPU.";
	for (size_t c = 0; c < looking->candidate_count; c++) {
		sites_add(&count, looking->candidates[c].count);
		sites_add(&ns, looking->sites->list[looking->candidates[c].site].time_ns);
	}
	finding_prove(finding, "load_count", count);
	finding_prove(finding, "load_time_ns", ns);
}

static uint64_t cost_ns(const struct site *site)
{
	uint64_t ns = sites_part(site->time_ns, site->after_free_count, site->count);

	sites_add(&ns, site->free_ns);
	return ns;
}

int detect_alloc_loop(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->class == XT_API_ALLOC && !site->is_async &&
		    site->after_free_count >= ALLOCS_LEAST)
			error = looking_add(looking, s, cost_ns(site), site->count);
	}
	return error;
}

void describe_alloc_loop(const struct looking *looking, struct finding *finding)
{
	uint64_t alloc_ns = 0, free_ns = 0, again = 0;
	char time[TIME_BYTES];

	for (size_t c = 0; c < looking->candidate_count; c++) {
		const struct site *site = &looking->sites->list[looking->candidates[c].site];

		sites_add(&alloc_ns, site->time_ns);
		sites_add(&free_ns, site->free_ns);
		sites_add(&again, site->after_free_count);
	}
	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s allocates again what was given back since, %s, which takes %s with the "
		    "frees, %s of the time at work.",
		    finding_api(looking, finding), finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Allocate once, before the loop, and use the memory again; or allocate "
			  "from a pool in stream order (cudaMallocAsync).";
	finding_prove(finding, "alloc_after_free_count", again);
	finding_prove(finding, "alloc_time_ns", alloc_ns);
	finding_prove(finding, "free_time_ns", free_ns);
}
