/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that all rules about callsites share: sum candidates, find places, write the text.
 */
#include "merge/findings/detection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/reading.h"
#include "merge/sums/aggregate.h"

#define RESOLVED_MAX 1024 /* candidates beyond this each become a place of their own */

void detection_add(struct detection *detection, struct candidate candidate)
{
	xt_append(detection->candidates, detection->candidate_count, detection->candidate_capacity,
		  candidate);
}

void detection_set_cost(struct detection *detection, uint64_t cost_ns)
{
	detection->cost_ns = cost_ns;
	detection->has_cost = true;
}

uint64_t detection_sum(const struct detection *detection, size_t offset)
{
	uint64_t sum = 0;

	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct callsite *callsite =
			&detection->callsites->list[detection->candidates[c].callsite];

		saturating_add(&sum, *(const uint64_t *)((const char *)callsite + offset));
	}
	return sum;
}

static uint64_t count_calls(const struct detection *detection)
{
	uint64_t calls = 0;

	for (size_t c = 0; c < detection->candidate_count; c++)
		saturating_add(&calls, detection->candidates[c].count);
	return calls;
}

/*
 * "200 times in step (train.c:42)" or "300 times in 4 places, most in step (train.c:42)". The
 * caller frees it.
 */
static char *where_text(const struct detection *detection, const struct finding *finding,
			const char *place)
{
	bool is_below =
		!finding->places[0].at.line &&
		finding_common_caller(&detection->reading->run->paths, finding) != NAME_EMPTY;
	char count[COUNT_BYTES], times[COUNT_BYTES + 8] = "once";
	uint64_t calls = count_calls(detection);

	if (calls != 1)
		snprintf(times, sizeof(times), "%s times", format_count(count, calls));
	if (finding->place_all_count == 1)
		return xt_asprintf("%s in %s", times, place);
	return xt_asprintf("%s in %zu places%s%s", times, finding->place_all_count,
			   is_below ? " called from " : ", most in ", place);
}

/* A placeholder of struct callsite_rule that has a name. */
struct named_value {
	const char *name, *text;
};

/* Writes the value of the placeholder that begins at `at`. values end with a name of NULL. */
static void put_value(FILE *out, const struct detection *detection,
		      const struct named_value *values, const char *at)
{
	size_t index = (size_t)(at[2] - '0');
	char text[TIME_BYTES];

	while (values->name && strncmp(at, values->name, strlen(values->name)) != 0)
		values++;
	if (values->name)
		fputs(values->text, out);
	else if (at[1] == 'w')
		fputs(detection->words[index], out);
	else if (at[1] == 'n')
		fprintf(out, "%" PRIu64, detection->facts[index]);
	else
		fputs((at[1] == 't' ? format_time_short
				    : format_bytes_short)(text, detection->facts[index]),
		      out);
}

void detection_describe(const struct detection *detection, const struct callsite_rule *rule,
			struct finding *finding)
{
	const struct paths *paths = &detection->reading->run->paths;
	char *place = finding_location(paths, finding);
	char *where = where_text(detection, finding, place);
	char *whole = xt_asprintf("the %s", finding_whole_text(finding));
	const struct named_value values[] = {
		{"{where}", where},
		{"{place}", place},
		{"{api}", names_text(&paths->names, finding->places[0].api, NULL)},
		{"{cost}", finding_cost(finding)},
		{"{share}", finding_share(finding)},
		{"{whole}", whole},
		{0}};
	size_t length;
	FILE *out = xt_open_memstream(&finding->what, &length);

	for (const char *at = rule->text; *at;) {
		size_t plain = strcspn(at, "{");

		fwrite(at, 1, plain, out);
		at += plain;
		if (!*at)
			break;
		put_value(out, detection, values, at);
		at += strcspn(at, "}") + 1;
	}
	xt_close_memstream(out);
	free_all(place, where, whole);
	for (size_t e = 0; e < FINDING_EVIDENCE_MAX && rule->evidence[e].name; e++) {
		size_t at = rule->evidence[e].at;
		uint64_t value = rule->evidence[e].kind == EVIDENCE_SUM
					 ? detection_sum(detection, at)
				 : rule->evidence[e].kind == EVIDENCE_FACT ? detection->facts[at]
									   : count_calls(detection);

		finding_add_evidence(finding, rule->evidence[e].name, value);
	}
}

/* Candidates with the same line. */
struct group {
	size_t top;		    /* index of the most expensive */
	struct finding_place place; /* without its frames */
};

COMPARE_BY(compare_candidates, struct candidate, DOWN(cost_ns) DOWN(count) UP(callsite))

COMPARE_BY(compare_groups, struct group, DOWN(place.cost_ns) UP(top))

/* The candidates must be sorted by cost. */
static void group_candidates(struct detection *detection, struct group *groups, size_t *count_out)
{
	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct candidate *candidate = &detection->candidates[c];
		struct finding_place place = {0};
		size_t g;

		if (c < RESOLVED_MAX)
			finding_resolve_line(detection->reading,
					     &detection->callsites->list[candidate->callsite],
					     &place);
		free(place.frames);
		g = place.at.line ? 0 : *count_out;
		while (g < *count_out && !finding_is_same_place(&groups[g].place, &place))
			g++;
		if (g == *count_out)
			groups[(*count_out)++] = (struct group){.top = c, .place = place};
		saturating_add(&groups[g].place.cost_ns, candidate->cost_ns);
		saturating_add(&groups[g].place.count, candidate->count);
	}
}

void detection_add_places(struct detection *detection, struct finding *finding)
{
	struct group *groups = xt_calloc(detection->candidate_count, sizeof(*groups));
	struct candidate *candidates = detection->candidates, first;
	size_t count = 0;

	qsort(candidates, detection->candidate_count, sizeof(*candidates), compare_candidates);
	group_candidates(detection, groups, &count);
	qsort(groups, count, sizeof(*groups), compare_groups);
	for (size_t g = 0; g < count && g < FINDING_PLACES_MAX; g++) {
		struct finding_place *place = &finding->places[finding->place_count++];

		finding_place(detection->reading,
			      &detection->callsites->list[candidates[groups[g].top].callsite],
			      place);
		place->cost_ns = groups[g].place.cost_ns;
		place->path_cost_ns = candidates[groups[g].top].cost_ns;
		place->count = groups[g].place.count;
	}
	first = candidates[groups[0].top];
	candidates[groups[0].top] = candidates[0];
	candidates[0] = first;
	finding->place_all_count = count;
	free(groups);
}

uint64_t devices_span_ns(const struct callsites *callsites)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		first_ns = smaller(callsites->devices[d].first_ns, first_ns);
		last_ns = larger(callsites->devices[d].last_ns, last_ns);
	}
	return last_ns > first_ns ? last_ns - first_ns : 0;
}
