/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of a finding. One line of a program may call from many stacks. They form one place,
 * which shows the path of the most expensive stack.
 */
#include "merge/findings/group_places.h"

#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/findings/finding.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/saturating.h"

#define RESOLVED_MAX 1024 /* candidates beyond this each become a place of their own */

/* Candidates with the same line. */
struct group {
	size_t top; /* index of the most expensive */
	uint64_t cost_ns;
	uint64_t count;
	uint32_t function, file, line, api;
};

COMPARE_BY(compare_candidates, struct candidate, DOWN(cost_ns) DOWN(count) UP(callsite))

COMPARE_BY(compare_groups, struct group, DOWN(cost_ns) UP(top))

static bool is_in_group(const struct group *group, const struct finding_place *place)
{
	return place->line && group->line == place->line && group->file == place->file &&
	       group->function == place->function && group->api == place->api;
}

/* The candidates must be sorted by cost. */
static void group_candidates(struct detection *detection, struct group *groups, size_t *count_out)
{
	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct candidate *candidate = &detection->candidates[c];
		struct finding_place place = {0};
		size_t g = 0;

		if (c < RESOLVED_MAX)
			finding_resolve_line(detection->reading,
					     &detection->callsites->list[candidate->callsite],
					     &place);
		free(place.frames);
		while (g < *count_out && !is_in_group(&groups[g], &place))
			g = place.line ? g + 1 : *count_out;
		if (g == *count_out)
			groups[(*count_out)++] = (struct group){
				c, 0, 0, place.function, place.file, place.line, place.api};
		saturating_add(&groups[g].cost_ns, candidate->cost_ns);
		saturating_add(&groups[g].count, candidate->count);
	}
}

void finding_add_places(struct detection *detection, struct finding *finding)
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
		place->cost_ns = groups[g].cost_ns;
		place->path_cost_ns = candidates[groups[g].top].cost_ns;
		place->count = groups[g].count;
	}
	first = candidates[groups[0].top];
	candidates[groups[0].top] = candidates[0];
	candidates[0] = first;
	finding->place_all_count = count;
	free(groups);
}
