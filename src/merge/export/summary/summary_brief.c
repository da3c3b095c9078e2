/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The brief summary: Markdown of at most BRIEF_BYTES_MAX for an issue, a chat or a program that
 * reads text. Below each table is the query that gives all of it.
 */
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "base/text.h"
#include "merge/export/summary/summary_headline.h"
#include "merge/export/tables/table_writers.h"
#include "merge/findings/finding.h"
#include "merge/ranks/collectives_words.h"
#include "merge/lines/lines.h"
#include "merge/steps/steps.h"
#include "merge/sums/trust.h"
#include "merge/export/formats.h"
#include "merge/findings/headline.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/kernels.h"
#include "merge/sums/run.h"

#define BRIEF_BYTES_MAX 8000
#define TEXT_COLUMNS	700 /* of a sentence */
#define FINDINGS_TOP	4
#define ROWS_TOP	8
#define MODULES_TOP	5
#define CUT_TEXT	"\n(cut: `xtrace merge --summary -` has all of it)\n"

static void put_prose(struct output *out, const char *text, size_t columns)
{
	markdown_line(out, text, strlen(text), columns, false);
}

static void put_head(struct output *out, const struct run *run)
{
	struct headline_texts texts;

	headline_texts(&texts, run);
	output_format(out, "# xtrace: where the GPU time went\n\n");
	for (size_t t = 0; t < texts.count; t++) {
		output_format(out, "- %s: ", texts.list[t].label);
		put_prose(out, texts.list[t].text, TEXT_COLUMNS);
		output_text(out, "\n", 1);
	}
	headline_texts_free(&texts);
	for (size_t c = 0; c < run->found->headline.cost_count; c++) {
		char *text = headline_cost_text(run, &run->found->headline.costs[c]);

		output_string(out, "- " HEADLINE_COST_LABEL ": ");
		put_prose(out, text, TEXT_COLUMNS);
		output_text(out, "\n", 1);
		free(text);
	}
	output_string(out, "\n`xtrace merge --sqlite run.db DIR` makes the database for the "
			   "queries below.\n\n");
}

static void put_finding(struct output *out, const struct run *run, const struct finding *finding)
{
	char *id = finding_id(&run->paths, finding), *what = finding_what(run, finding);
	uint64_t step_count = finding_only_step(run, finding) ? 0 : finding->step_count;
	char cost[TIME_BYTES], whole[TIME_BYTES];

	format_time_short(cost, finding->cost_ns / larger(step_count, UINT64_C(1)));
	format_time_short(whole, finding->whole_ns / larger(step_count, UINT64_C(1)));
	output_format(out, "### %s, %s (%s of %s %s)\n\n- id: ", rule_specs[finding->rule].name,
		      format_percent_of(finding->cost_ns, finding->whole_ns), cost, whole,
		      step_count ? "per step" : finding_whole_text(finding));
	markdown_code(out, id, strlen(id));
	output_text(out, "\n- ", 3);
	put_prose(out, what, TEXT_COLUMNS);
	output_text(out, "\n- try: ", 8);
	put_prose(out, finding->advice, TEXT_COLUMNS);
	output_text(out, "\n- evidence:", 12);
	for (size_t e = 0; e < finding->evidence.count; e++)
		output_format(out, "%s %s %llu", e ? "," : "", finding->evidence.list[e].name,
			      (unsigned long long)finding->evidence.list[e].value);
	output_text(out, "\n\n", 2);
	free_all(id, what);
}

static void put_findings(struct output *out, const struct run *run, size_t shown)
{
	for (size_t f = 0; f < shown; f++)
		put_finding(out, run, &run->found->findings.list[f]);
}

/* Writes a sentence in a line of its own. Frees it. */
static void put_sentence(struct output *out, char *text)
{
	if (text[0]) {
		markdown_line(out, text, strlen(text), TEXT_COLUMNS, false);
		output_text(out, "\n\n", 2);
	}
	free(text);
}

/* The verdict on the ranks, and what limits it. */
static void put_verdict(struct output *out, const struct run *run, size_t shown)
{
	(void)shown;
	put_sentence(out, verdict_text(run, NULL));
	put_sentence(out, incomplete_text(run));
	if (run->compared->report.job_count > 1)
		put_sentence(out, jobs_text(run));
}

static void put_mpi(struct output *out, const struct run *run, size_t shown)
{
	(void)shown;
	put_sentence(out, mpi_waits_text(run, &run->compared->report.mpi));
}

/* A table, and what precedes its rows. */
struct section {
	const struct table_def *def;
	size_t rows_max;
	void (*put)(struct output *out, const struct run *run, size_t shown); /* or NULL */
};

static const struct section sections[] = {
	{&table_budget, SIZE_MAX, NULL},
	{&text_slow_steps, SIZE_MAX, NULL},
	{&text_step_lines, ROWS_TOP, NULL},
	{&text_lines, ROWS_TOP, NULL},
	{&table_findings, FINDINGS_TOP, put_findings},
	{&table_modules, MODULES_TOP, NULL},
	{&text_costly_ranks, ROWS_TOP, put_verdict},
	{&text_mpi_ranks, ROWS_TOP, put_mpi},
	{&table_kernels, ROWS_TOP, NULL},
	{&text_idle, SIZE_MAX, NULL},
};

static void put_section(struct output *out, const struct run *run, const struct section *section)
{
	const struct table_def *def = section->def;
	size_t count = table_count(run, def), shown = smaller(count, section->rows_max);

	if (!count && def == &table_findings)
		output_format(out, "## %s: none\n\n", def->title);
	if (!count)
		return;
	output_format(out, "## %s: %zu of %zu\n\n", def->title, shown, count);
	if (section->put)
		section->put(out, run, shown);
	if (def->shows)
		table_put_markdown(out, run, def, shown);
	output_format(out, "`SELECT * FROM %s;`\n\n", def->view ?: def->name);
}

static void put_all(struct output *out, const struct run *run)
{
	put_head(out, run);
	for (size_t s = 0; s < sizeof(sections) / sizeof(*sections); s++)
		if (sections[s].def != &text_lines || !steps_of(run))
			put_section(out, run, &sections[s]);
	output_string(out, "## Trust\n\n");
	for (int l = 0; l < TRUST_LINES; l++) {
		output_string(out, "- ");
		put_prose(out, run->trust->lines[l], TEXT_COLUMNS);
		output_text(out, "\n", 1);
	}
}

/* Returns the length of the complete lines that fit. */
static size_t fitting(const char *text, size_t length)
{
	size_t kept = BRIEF_BYTES_MAX - strlen(CUT_TEXT);

	if (length <= BRIEF_BYTES_MAX)
		return length;
	while (kept && text[kept - 1] != '\n')
		kept--;
	return kept;
}

static void brief_end(struct sink *sink, const struct run *run)
{
	struct output memory;
	struct output_bytes bytes;
	size_t kept;

	output_open_memory(&memory);
	put_all(&memory, run);
	bytes = output_bytes(&memory);
	kept = fitting(bytes.data, bytes.length);
	output_text(&sink->out, bytes.data, kept);
	if (kept < bytes.length)
		output_text(&sink->out, CUT_TEXT, strlen(CUT_TEXT));
	output_discard(&memory);
}

const struct exporter exporter_brief = {
	.name = "brief",
	.what = "Write the headline, the findings and the largest rows of tables as Markdown of at "
		"most 8 KB, with the queries that give all rows",
	.uses = USES_PATHS | USES_FINDINGS,
	.analyses = (const struct exporter *const[]){&analysis_steps, &analysis_lines,
						     &analysis_kernels, NULL},
	.end = brief_end,
};
