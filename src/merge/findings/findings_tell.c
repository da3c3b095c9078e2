/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that all rules use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/findings/findings_place.h"
#include "merge/findings/findings_rules.h"

#define PLACES_BYTES 1024
#define SHARE_BYTES  16

const char *finding_api(const struct looking *looking, const struct finding *finding)
{
	return names_text(&looking->reading->run->paths.names, finding->places[0].api, NULL);
}

const char *finding_places(const struct looking *looking, const struct finding *finding)
{
	static char text[PLACES_BYTES];
	char *where = finding_where(&looking->reading->run->paths, finding), count[COUNT_BYTES];
	bool is_below = !finding->places[0].line &&
			finding_common(&looking->reading->run->paths, finding) != NAME_EMPTY;
	uint64_t calls = 0;
	int length;

	for (size_t c = 0; c < looking->candidate_count; c++)
		calls += looking->candidates[c].count;
	format_count(count, calls);
	length = snprintf(text, sizeof(text), calls == 1 ? "once" : "%s times", count);
	if (finding->place_all_count == 1)
		snprintf(text + length, sizeof(text) - (size_t)length, " in %s",
			 where ? where : "?");
	else
		snprintf(text + length, sizeof(text) - (size_t)length, " in %zu places%s%s",
			 finding->place_all_count, is_below ? " below " : ", most in ",
			 where ? where : "?");
	free(where);
	return text;
}

const char *finding_share(uint64_t part, uint64_t whole)
{
	static char texts[2][SHARE_BYTES];
	static int next;
	char *text = texts[next = !next];

	snprintf(text, SHARE_BYTES, "%.1f %%", whole ? 100.0 * (double)part / (double)whole : 0.0);
	return text;
}
