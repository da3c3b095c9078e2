/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers that all rules use.
 */
#include "merge/findings/detection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/findings/finding.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/reading.h"
#include "merge/sums/saturating.h"

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

/* "200 times in step (train.c:42)" or "300 times in 4 places, most in step (train.c:42)". */
static void put_where(FILE *out, const struct detection *detection, const struct finding *finding)
{
	const struct paths *paths = &detection->reading->run->paths;
	char *where = finding_location(paths, finding), count[COUNT_BYTES];
	bool is_below =
		!finding->places[0].line && finding_common_caller(paths, finding) != NAME_EMPTY;
	uint64_t calls = count_calls(detection);

	fprintf(out, calls == 1 ? "once" : "%s times", format_count(count, calls));
	if (finding->place_all_count == 1)
		fprintf(out, " in %s", where);
	else
		fprintf(out, " in %zu places%s%s", finding->place_all_count,
			is_below ? " called from " : ", most in ", where);
	free(where);
}

static void put_place(FILE *out, const struct detection *detection, const struct finding *finding)
{
	char *place = finding_location(&detection->reading->run->paths, finding);

	fputs(place, out);
	free(place);
}

static void put_api(FILE *out, const struct detection *detection, const struct finding *finding)
{
	fputs(names_text(&detection->reading->run->paths.names, finding->places[0].api, NULL), out);
}

static void put_cost(FILE *out, const struct detection *detection, const struct finding *finding)
{
	(void)detection;
	fputs(finding_cost(finding), out);
}

static void put_share(FILE *out, const struct detection *detection, const struct finding *finding)
{
	(void)detection;
	fputs(finding_share(finding), out);
}

/* The placeholders of struct callsite_rule that have names. */
static const struct {
	const char *name;
	void (*put)(FILE *out, const struct detection *detection, const struct finding *finding);
} values[] = {
	{"{where}", put_where}, {"{place}", put_place}, {"{api}", put_api},
	{"{cost}", put_cost},	{"{share}", put_share},
};

/* Writes the value of the placeholder that begins at `at`. */
static void put_value(FILE *out, const struct detection *detection, const struct finding *finding,
		      const char *at)
{
	size_t index = (size_t)(at[2] - '0');
	char text[TIME_BYTES];

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
		if (!strncmp(at, values[v].name, strlen(values[v].name))) {
			values[v].put(out, detection, finding);
			return;
		}
	if (at[1] == 'w') {
		fputs(detection->words[index], out);
	} else if (at[1] == 'n') {
		fprintf(out, "%" PRIu64, detection->facts[index]);
	} else {
		(at[1] == 't' ? format_time : format_bytes)(text, detection->facts[index]);
		fputs(text, out);
	}
}

void detection_describe(const struct detection *detection, const struct callsite_rule *rule,
			struct finding *finding)
{
	size_t length;
	FILE *out = xt_open_memstream(&finding->what, &length);

	for (const char *at = rule->text; *at;) {
		size_t plain = strcspn(at, "{");

		fwrite(at, 1, plain, out);
		at += plain;
		if (!*at)
			break;
		put_value(out, detection, finding, at);
		at += strcspn(at, "}") + 1;
	}
	xt_close_memstream(out);
	for (size_t e = 0; e < FINDING_EVIDENCE_MAX && rule->evidence[e].name; e++) {
		size_t at = rule->evidence[e].at;
		uint64_t value = rule->evidence[e].kind == EVIDENCE_SUM
					 ? detection_sum(detection, at)
				 : rule->evidence[e].kind == EVIDENCE_FACT ? detection->facts[at]
									   : count_calls(detection);

		finding_add_evidence(finding, rule->evidence[e].name, value);
	}
}
