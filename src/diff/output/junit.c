/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JUnit XML, which CI systems show as tests. Each rule is a test. A broken rule is a failure. An
 * inconclusive rule is an error, as is a comparison with problems.
 */
#include "diff/compare/comparison.h"
#include "diff/compare/row_text.h"
#include "diff/output/diff_output.h"

#define SUITE "xtrace"

/* XML allows no control characters, not even escaped. */
static void put_text(struct output *out, const char *text)
{
	static const char *const escapes[128] = {
		[1 ... 9] = "?", ['\n'] = "&#10;", [11 ... 31] = "?", ['&'] = "&amp;",
		['<'] = "&lt;",	 ['>'] = "&gt;",   ['"'] = "&quot;"};

	output_escaped(out, text, escapes);
}

static void put_attribute(struct output *out, const char *name, const char *value)
{
	output_format(out, " %s=\"", name);
	put_text(out, value);
	output_char(out, '"');
}

static void put_finding(struct output *out, const struct rule_finding *finding)
{
	const struct profile_entry *entry = finding->row ? change_entry(finding->row) : NULL;
	const char *places[SOURCE_PLACES_MAX];
	size_t count = entry ? source_places(entry, places) : 0;

	put_text(out, finding->what);
	output_string(out, ": ");
	put_text(out, finding->why);
	if (finding->allowed_by) {
		output_string(out, "; allowed by ");
		put_text(out, finding->allowed_by->origin);
		output_string(out, ": ");
		put_text(out, finding->allowed_by->text);
	}
	output_char(out, '\n');
	for (size_t p = 0; p < count; p++) {
		output_string(out, p ? " \xe2\x80\xb9 " : "    at ");
		put_text(out, places[p]);
	}
	if (count)
		output_char(out, '\n');
}

/* XML element by outcome. */
static const char *const elements[] = {
	[OUTCOME_PASS] = "system-out",
	[OUTCOME_FAIL] = "failure",
	[OUTCOME_UNKNOWN] = "error",
};

static void put_case(struct output *out, const struct verdict *verdict,
		     const struct rule_result *result)
{
	const char *element = elements[result->outcome];

	output_format(out, "    <testcase classname=\"" SUITE "\" time=\"0\"");
	put_attribute(out, "name", result->rule->text);
	output_format(out, ">\n      <%s", element);
	if (result->outcome != OUTCOME_PASS) {
		put_attribute(out, "message", result->text);
		put_attribute(out, "type", outcome_words[result->outcome]);
	}
	output_char(out, '>');
	put_text(out, result->text);
	output_char(out, '\n');
	for (size_t f = 0; f < result->finding_count; f++)
		put_finding(out, &verdict->findings[result->first_finding + f]);
	output_format(out, "</%s>\n    </testcase>\n", element);
}

static void put_problems(struct output *out, const struct problems *problems)
{
	output_format(out, "    <testcase classname=\"" SUITE
			   "\" name=\"comparison\" time=\"0\">\n      <error");
	put_attribute(out, "message", problems->lines[0]);
	put_attribute(out, "type", outcome_words[OUTCOME_UNKNOWN]);
	output_char(out, '>');
	for (size_t p = 0; p < problems->count; p++) {
		put_text(out, problems->lines[p]);
		output_char(out, '\n');
	}
	output_string(out, "</error>\n    </testcase>\n");
}

int diff_output_junit(struct output *out, const void *context)
{
	const struct diff_result *result = context;
	const struct verdict *verdict = result->verdict;
	size_t counts[3] = {0}, extra = verdict->problems.count > 0;

	for (size_t r = 0; r < verdict->result_count; r++)
		counts[verdict->results[r].outcome]++;
	output_string(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	output_format(out,
		      "  <testsuite name=\"" SUITE
		      "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\" "
		      "time=\"0\">\n    <properties>\n",
		      verdict->result_count + extra, counts[OUTCOME_FAIL],
		      counts[OUTCOME_UNKNOWN] + extra);
	for (int s = 0; s < SIDES; s++) {
		output_string(out, "      <property");
		put_attribute(out, "name", s == SIDE_BASE ? "base" : "new");
		put_attribute(out, "value", result->arguments[s]);
		output_string(out, "/>\n");
	}
	if (result->comparison)
		output_format(out, "      <property name=\"values\" value=\"of %s\"/>\n",
			      comparison_values(result->comparison));
	output_string(out, "    </properties>\n");
	if (extra)
		put_problems(out, &verdict->problems);
	for (size_t r = 0; r < verdict->result_count; r++)
		put_case(out, verdict, &verdict->results[r]);
	output_string(out, "  </testsuite>\n</testsuites>\n");
	return 0;
}
