/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/number_format.h"
#include "merge/findings/rules.h"

#define SHARE_HIGH   4 /* 1/4 of the active time */
#define SHARE_MEDIUM 10

const char *finding_severity(const struct finding *finding)
{
	if (rule_specs[finding->rule].is_error)
		return "error";
	if (finding->cost_ns >= finding->whole_ns / SHARE_HIGH)
		return "high";
	return finding->cost_ns >= finding->whole_ns / SHARE_MEDIUM ? "medium" : "low";
}

const char *finding_whole_text(const struct finding *finding)
{
	if (finding->rule == RULE_HANG)
		return "from the first collective to the end, of all ranks";
	if (finding->rule == RULE_LATE_RANK)
		return "from the first to the last collective, of all ranks";
	return finding->rule >= RULE_CPU_FIRST ? "from the first to the last GPU work"
					       : "active time";
}

const char *finding_cost(const struct finding *finding)
{
	static char text[TIME_BYTES];

	format_time(text, finding->cost_ns);
	return text;
}

const char *finding_share(const struct finding *finding)
{
	static char text[SHARE_BYTES];

	format_share(text, finding->cost_ns, finding->whole_ns);
	return text;
}

void finding_set_text(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	free(finding->what);
	if (vasprintf(&finding->what, format, arguments) < 0)
		finding->what = NULL;
	va_end(arguments);
}

void finding_add_evidence(struct finding *finding, const char *name, uint64_t value)
{
	if (finding->evidence_count == FINDING_EVIDENCE_MAX)
		return;
	finding->evidence[finding->evidence_count].name = name;
	finding->evidence[finding->evidence_count++].value = value;
}

void finding_free(struct finding *finding)
{
	for (size_t p = 0; p < finding->place_count; p++)
		free(finding->places[p].frames);
	free(finding->process);
	free(finding->what);
	*finding = (struct finding){0};
}
