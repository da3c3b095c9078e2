/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about calls: failed calls, code loaded repeatedly, allocations in a loop.
 */
#include "merge/findings/rules_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/reading.h"

#define LOADS_MIN  8  /* loads with launches in between */
#define ALLOCS_MIN 16 /* allocations with frees in between */

static const uint32_t checked_classes = 1u << XT_API_LAUNCH | 1u << XT_API_GRAPH_LAUNCH |
					1u << XT_API_COPY | 1u << XT_API_SET | 1u << XT_API_ALLOC |
					1u << XT_API_FREE | 1u << XT_API_SYNC | 1u << XT_API_MODULE;

void detect_api_errors(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->failed_count && checked_classes >> callsite->class & 1)
			detection_add(detection, s,
				      scale_ns(callsite->time_ns, callsite->failed_count,
					       callsite->count),
				      callsite->failed_count);
	}
}

void describe_api_errors(const struct detection *detection, struct finding *finding)
{
	const struct callsite *callsite =
		&detection->callsites->list[detection->candidates[0].callsite];
	const char *name = error_label(callsite->last_result);
	char *where = finding_location(&detection->reading->run->paths, finding), others[64] = "";
	uint64_t failed_count = 0;

	for (size_t c = 0; c < detection->candidate_count; c++)
		failed_count += detection->candidates[c].count;
	if (detection->candidate_count > 1)
		snprintf(others, sizeof(others), " Calls also fail in %zu other place%s.",
			 detection->candidate_count - 1, detection->candidate_count > 2 ? "s" : "");
	finding_set_text(
		finding,
		"%s fails with %s (%" PRIu64 "), %" PRIu64 " of %" PRIu64 " times in %s.%s",
		detection_api(detection, finding), name ? name : "error", callsite->last_result,
		callsite->failed_count, callsite->count, where, others);
	free(where);
	finding_add_evidence(finding, "failed_count", failed_count);
	finding_add_evidence(finding, "call_count", callsite->count);
	finding_add_evidence(finding, "error", callsite->last_result);
}

void detect_module_loads(struct detection *detection)
{
	const struct model *model = detection->reading->model;

	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];
		const char *name =
			names_text(&model->names, model->apis.rows[callsite->api].name, NULL);

		if (callsite->class == XT_API_MODULE && callsite->after_work_count >= LOADS_MIN &&
		    !strstr(name, "Unload"))
			detection_add(detection, s, callsite->time_ns, callsite->count);
	}
}

void describe_module_loads(const struct detection *detection, struct finding *finding)
{
	uint64_t count = 0, ns = 0;

	finding_set_text(finding,
			 "%s loads code while work is in progress, %s. This takes %s, %s of the "
			 "active time.",
			 detection_api(detection, finding),
			 detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding));
	for (size_t c = 0; c < detection->candidate_count; c++) {
		saturating_add(&count, detection->candidates[c].count);
		saturating_add(
			&ns, detection->callsites->list[detection->candidates[c].callsite].time_ns);
	}
	finding_add_evidence(finding, "load_count", count);
	finding_add_evidence(finding, "load_time_ns", ns);
}

static uint64_t cost_ns(const struct callsite *callsite)
{
	uint64_t ns = scale_ns(callsite->time_ns, callsite->after_free_count, callsite->count);

	saturating_add(&ns, callsite->free_ns);
	return ns;
}

void detect_alloc_loop(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->class == XT_API_ALLOC && !callsite->is_async &&
		    callsite->after_free_count >= ALLOCS_MIN)
			detection_add(detection, s, cost_ns(callsite), callsite->count);
	}
}

void describe_alloc_loop(const struct detection *detection, struct finding *finding)
{
	uint64_t alloc_ns = 0, free_ns = 0, again = 0;

	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct callsite *callsite =
			&detection->callsites->list[detection->candidates[c].callsite];

		saturating_add(&alloc_ns, callsite->time_ns);
		saturating_add(&free_ns, callsite->free_ns);
		saturating_add(&again, callsite->after_free_count);
	}
	finding_set_text(finding,
			 "%s allocates again after memory was freed, %s. With the frees this takes "
			 "%s, %s of the active time.",
			 detection_api(detection, finding),
			 detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding));
	finding_add_evidence(finding, "alloc_after_free_count", again);
	finding_add_evidence(finding, "alloc_time_ns", alloc_ns);
	finding_add_evidence(finding, "free_time_ns", free_ns);
}
