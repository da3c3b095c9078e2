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
static void put_text(FILE *file, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		case '\n':
			fputs("&#10;", file);
			break;
		default:
			fputc((unsigned char)*text < ' ' ? '?' : *text, file);
		}
	}
}

static void put_attribute(FILE *file, const char *name, const char *value)
{
	fprintf(file, " %s=\"", name);
	put_text(file, value);
	fputc('"', file);
}

static void put_finding(FILE *file, const struct finding *finding)
{
	const struct profile_entry *entry = finding->row ? change_entry(finding->row) : NULL;
	const char *places[SOURCE_PLACES_MAX];
	size_t count = entry ? source_places(entry, places) : 0;

	put_text(file, finding->what);
	fputs(": ", file);
	put_text(file, finding->why);
	if (finding->allowed_by) {
		fputs("; allowed by ", file);
		put_text(file, finding->allowed_by->origin);
		fputs(": ", file);
		put_text(file, finding->allowed_by->text);
	}
	fputc('\n', file);
	for (size_t p = 0; p < count; p++) {
		fputs(p ? " \xe2\x80\xb9 " : "    at ", file);
		put_text(file, places[p]);
	}
	if (count)
		fputc('\n', file);
}

/* XML element by outcome. */
static const char *const elements[] = {
	[OUTCOME_PASS] = "system-out",
	[OUTCOME_FAIL] = "failure",
	[OUTCOME_UNKNOWN] = "error",
};

static void put_case(FILE *file, const struct verdict *verdict, const struct rule_result *result)
{
	const char *element = elements[result->outcome];

	fprintf(file, "    <testcase classname=\"" SUITE "\" time=\"0\"");
	put_attribute(file, "name", result->rule->text);
	fprintf(file, ">\n      <%s", element);
	if (result->outcome != OUTCOME_PASS) {
		put_attribute(file, "message", result->text);
		put_attribute(file, "type", outcome_words[result->outcome]);
	}
	fputc('>', file);
	put_text(file, result->text);
	fputc('\n', file);
	for (size_t f = 0; f < result->finding_count; f++)
		put_finding(file, &verdict->findings[result->first_finding + f]);
	fprintf(file, "</%s>\n    </testcase>\n", element);
}

static void put_problems(FILE *file, const struct problems *problems)
{
	fprintf(file, "    <testcase classname=\"" SUITE
		      "\" name=\"comparison\" time=\"0\">\n      <error");
	put_attribute(file, "message", problems->lines[0]);
	put_attribute(file, "type", outcome_words[OUTCOME_UNKNOWN]);
	fputc('>', file);
	for (size_t p = 0; p < problems->count; p++) {
		put_text(file, problems->lines[p]);
		fputc('\n', file);
	}
	fputs("</error>\n    </testcase>\n", file);
}

static int write_junit(FILE *file, const void *context)
{
	const struct diff_result *result = context;
	const struct verdict *verdict = result->verdict;
	size_t counts[3] = {0}, extra = verdict->problems.count > 0;

	for (size_t r = 0; r < verdict->result_count; r++)
		counts[verdict->results[r].outcome]++;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", file);
	fprintf(file,
		"  <testsuite name=\"" SUITE "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"0\" time=\"0\">\n    <properties>\n",
		verdict->result_count + extra, counts[OUTCOME_FAIL],
		counts[OUTCOME_UNKNOWN] + extra);
	for (int s = 0; s < SIDES; s++) {
		fputs("      <property", file);
		put_attribute(file, "name", s == SIDE_BASE ? "base" : "new");
		put_attribute(file, "value", result->arguments[s]);
		fputs("/>\n", file);
	}
	if (result->comparison)
		fprintf(file, "      <property name=\"values\" value=\"of %s\"/>\n",
			comparison_values(result->comparison));
	fputs("    </properties>\n", file);
	if (extra)
		put_problems(file, &verdict->problems);
	for (size_t r = 0; r < verdict->result_count; r++)
		put_case(file, verdict, &verdict->results[r]);
	fputs("  </testsuite>\n</testsuites>\n", file);
	return 0;
}

const struct output_writer diff_output_junit = {
	.name = "junit",
	.help = "Write JUnit XML in which each rule is a test",
	.write_file = write_junit,
};
