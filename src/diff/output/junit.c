/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JUnit XML, which CI systems show as tests. Each rule is a test. A broken rule is a failure. An
 * inconclusive rule is an error, as is a comparison with problems.
 */
#include "diff/compare/comparison.h"
#include "diff/compare/row_text.h"
#include "diff/output/diff_output.h"

#define SUITE	"xtrace"
#define MESSAGE " message=\"%s\" type=\"%s\""

/* XML allows no control characters, not even escaped. */
static const char *xml(const char *text)
{
	static const char *const escapes[128] = {
		[1 ... 9] = "?", ['\n'] = "&#10;", [11 ... 31] = "?", ['&'] = "&amp;",
		['<'] = "&lt;",	 ['>'] = "&gt;",   ['"'] = "&quot;"};

	return text_escaped(text, escapes);
}

static void put_finding(struct output *out, const struct rule_finding *finding)
{
	const struct profile_entry *entry = finding->row ? change_entry(finding->row) : NULL;
	const char *places[SOURCE_PLACES_MAX];
	size_t count = entry ? source_places(entry, places) : 0;

	output_format(out, "%s: %s", xml(finding->what), xml(finding->why));
	if (finding->allowed_by)
		output_format(out, "; allowed by %s: %s", xml(finding->allowed_by->origin),
			      xml(finding->allowed_by->text));
	output_char(out, '\n');
	for (size_t p = 0; p < count; p++)
		output_format(out, "%s%s", p ? " \xe2\x80\xb9 " : "    at ", xml(places[p]));
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
	const char *element = elements[result->outcome], *text = xml(result->text);

	output_format(out, "    <testcase classname=\"" SUITE "\" time=\"0\" name=\"%s\">\n",
		      xml(result->rule->text));
	output_format(out, "      <%s", element);
	if (result->outcome != OUTCOME_PASS)
		output_format(out, MESSAGE, text, outcome_words[result->outcome]);
	output_format(out, ">%s\n", text);
	for (size_t f = 0; f < result->finding_count; f++)
		put_finding(out, &verdict->findings[result->first_finding + f]);
	output_format(out, "</%s>\n    </testcase>\n", element);
}

static void put_problems(struct output *out, const struct problems *problems)
{
	output_format(out,
		      "    <testcase classname=\"" SUITE
		      "\" name=\"comparison\" time=\"0\">\n      <error" MESSAGE ">",
		      xml(problems->lines[0]), outcome_words[OUTCOME_UNKNOWN]);
	for (size_t p = 0; p < problems->count; p++)
		output_format(out, "%s\n", xml(problems->lines[p]));
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
	for (int s = 0; s < SIDES; s++)
		output_format(out, "      <property name=\"%s\" value=\"%s\"/>\n",
			      s == SIDE_BASE ? "base" : "new", xml(result->arguments[s]));
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
