/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers that all rules use.
 */
#include "merge/findings/detection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/findings/finding.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/reading.h"

#define PLACES_BYTES 1024

void detection_add(struct detection *detection, uint32_t callsite, uint64_t cost_ns, uint64_t count)
{
	xt_append(detection->candidates, detection->candidate_count, detection->candidate_capacity,
		  (struct candidate){.callsite = callsite, .cost_ns = cost_ns, .count = count});
}

void detection_set_cost(struct detection *detection, uint64_t cost_ns)
{
	detection->cost_ns = cost_ns;
	detection->has_cost = true;
}

const char *detection_api(const struct detection *detection, const struct finding *finding)
{
	return names_text(&detection->reading->run->paths.names, finding->places[0].api, NULL);
}

const char *detection_where_text(const struct detection *detection, const struct finding *finding)
{
	static char text[PLACES_BYTES];
	char *where = finding_location(&detection->reading->run->paths, finding),
	     count[COUNT_BYTES];
	bool is_below =
		!finding->places[0].line &&
		finding_common_caller(&detection->reading->run->paths, finding) != NAME_EMPTY;
	uint64_t calls = 0;
	int length;

	for (size_t c = 0; c < detection->candidate_count; c++)
		calls += detection->candidates[c].count;
	format_count(count, calls);
	length = snprintf(text, sizeof(text), calls == 1 ? "once" : "%s times", count);
	if (finding->place_all_count == 1)
		snprintf(text + length, sizeof(text) - (size_t)length, " in %s", where);
	else
		snprintf(text + length, sizeof(text) - (size_t)length, " in %zu places%s%s",
			 finding->place_all_count, is_below ? " called from " : ", most in ",
			 where);
	free(where);
	return text;
}

const char *format_percent_of(uint64_t part, uint64_t whole)
{
	static char texts[2][SHARE_BYTES];
	static int next;
	char *text = texts[next = !next];

	format_share(text, part, whole);
	return text;
}
