/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The brief summary: Markdown of at most BRIEF_BYTES_MAX for an issue, a chat or a program that
 * reads text. Below each table is the query that gives the same numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "base/text.h"
#include "merge/export/summary/summary_headline.h"
#include "merge/export/summary/summary_json.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"
#include "merge/findings/finding.h"
#include "merge/ranks/collectives_words.h"
#include "merge/sums/build_tree.h"
#include "merge/steps/steps.h"
#include "merge/sums/path_tables.h"
#include "merge/sums/trust.h"
#include "merge/export/formats.h"
#include "merge/findings/headline.h"
#include "merge/ranks/compared_ranks.h"
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

static void put_query(struct output *out, const char *sql)
{
	output_format(out, "\n`%s`\n\n", sql);
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
		char *text = headline_cost_text(&run->found->headline.costs[c]);

		output_format(out, "- %s: ", headline_cost_label(&run->found->headline.costs[c]));
		put_prose(out, text, TEXT_COLUMNS);
		output_text(out, "\n", 1);
		free(text);
	}
	output_format(out, "\n`xtrace merge --sqlite run.db DIR` makes the database for the "
			   "queries below.\n");
	output_format(out, "\nTime with GPU work, and the longest gap:\n");
	put_query(out, summary_query(QUERY_BUSY)->sql);
	output_format(out, "`%s`\n\n", summary_query(QUERY_LONGEST_GAP)->sql);
}

static void put_finding(struct output *out, const struct run *run, const struct finding *finding)
{
	char *id = finding_id(&run->paths, finding), cost[TIME_BYTES], whole[TIME_BYTES];

	format_time(cost, finding->cost_ns);
	format_time(whole, finding->whole_ns);
	output_format(out, "### %s, %s (%s of %s %s)\n\n- id: ", rule_specs[finding->rule].name,
		      format_percent_of(finding->cost_ns, finding->whole_ns), cost, whole,
		      finding_whole_text(finding));
	markdown_code(out, id, strlen(id));
	output_text(out, "\n- ", 3);
	put_prose(out, finding->what, TEXT_COLUMNS);
	output_text(out, "\n- try: ", 8);
	put_prose(out, finding->advice, TEXT_COLUMNS);
	output_text(out, "\n- evidence:", 12);
	for (size_t e = 0; e < finding->evidence_count; e++)
		output_format(out, "%s %s %llu", e ? "," : "", finding->evidence[e].name,
			      (unsigned long long)finding->evidence[e].value);
	output_text(out, "\n\n", 2);
	free(id);
}

static void put_findings_brief(struct output *out, const struct run *run)
{
	const struct findings *findings = &run->found->findings;
	size_t shown = findings->count < FINDINGS_TOP ? findings->count : FINDINGS_TOP;

	output_format(out, "## Findings: %zu of %zu\n\n", shown, findings->count);
	for (size_t f = 0; f < shown; f++)
		put_finding(out, run, &findings->list[f]);
	output_format(out, "`xtrace merge --summary - DIR | jq '.findings.rows[]'`\n\n");
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
static void put_verdict(struct output *out, const struct run *run)
{
	put_sentence(out, verdict_text(run));
	put_sentence(out, incomplete_text(run));
	if (run->compared->report.job_count > 1)
		put_sentence(out, jobs_text(run));
}

/* The ranks that cost the others most. */
static void put_ranks(struct output *out, const struct run *run)
{
	size_t count = table_count(run, &text_costly_ranks);

	if (!count)
		return;
	output_format(out, "## Ranks: %zu of %zu\n\n", count < ROWS_TOP ? count : ROWS_TOP, count);
	put_verdict(out, run);
	table_put_markdown(out, run, &text_costly_ranks, ROWS_TOP);
	output_format(out, "\n`xtrace merge --summary - DIR | jq .collectives`\n\n");
}

static void put_mpi(struct output *out, const struct run *run)
{
	const struct mpi_waits *waits = &run->compared->report.mpi;
	size_t count = waits->rank_count;

	if (!count)
		return;
	output_format(out, "## Ranks in collectives of MPI: %zu of %zu\n\n",
		      count < ROWS_TOP ? count : ROWS_TOP, count);
	put_sentence(out, mpi_waits_text(run, waits));
	table_put_markdown(out, run, &text_mpi_ranks, ROWS_TOP);
	output_format(out, "\n`xtrace merge --summary - DIR | jq .mpi`\n\n");
}

static void brief_put_row(struct output *out, const struct run *run, const struct table_row *row,
			  const char *name)
{
	char time[TIME_BYTES];

	format_time(time, row->value);
	output_format(out, "| %s | %s | ", time,
		      format_percent_of(row->value, run->sums->events.work.gpu_ns));
	markdown_code(out, name, strlen(name));
	output_text(out, " |\n", 3);
}

static void put_rows(struct output *out, const struct run *run, const struct table *table,
		     const char *title, const char *column, enum query query)
{
	size_t shown = table->count < ROWS_TOP ? table->count : ROWS_TOP, length;

	output_format(out,
		      "## %s: %zu of %zu\n\n| GPU time | share | %s |\n| ---: | ---: | --- |\n",
		      title, shown, table->count, column);
	for (size_t r = 0; r < shown; r++) {
		const struct table_row *row = &table->rows[r];
		char *name = query == QUERY_FRAMES
				     ? paths_frame_where(&run->paths, row->id)
				     : xt_strdup(leaf_name(&run->paths, row->id, &length));

		brief_put_row(out, run, row, name);
		free(name);
	}
	put_query(out, summary_query(query)->sql);
}

static void put_tables(struct output *out, const struct run *run)
{
	struct table frames = {0}, kernels = {0};

	table_own_frames(&frames, &run->paths, NULL);
	table_leaves(&kernels, &run->paths);
	put_rows(out, run, &frames, "GPU time by frame of your own code", "frame", QUERY_FRAMES);
	put_rows(out, run, &kernels, "Kernels, copies and memsets", "name", QUERY_KERNELS);
	table_free(&frames);
	table_free(&kernels);
}

static void put_modules(struct output *out, const struct run *run)
{
	size_t count = table_count(run, &table_modules);

	if (!count)
		return;
	output_format(out, "## GPU time by PyTorch module: %zu of %zu\n\n",
		      count < MODULES_TOP ? count : MODULES_TOP, count);
	table_put_markdown(out, run, &table_modules, MODULES_TOP);
	output_format(out, "\n`xtrace merge --summary - DIR | jq .modules`\n\n");
}

static void put_idle(struct output *out, const struct run *run)
{
	const struct headline *headline = &run->found->headline;
	enum idle_class order[IDLE_CLASSES];
	size_t count = headline_idle_order(headline, order);
	char time[TIME_BYTES];

	if (!headline->span_ns)
		return;
	output_format(out, "## Idle time by cause\n\n| time | share | cause |\n"
			   "| ---: | ---: | --- |\n");
	for (size_t i = 0; i < count; i++) {
		format_time(time, headline->idle_ns[order[i]]);
		output_format(out, "| %s | %s | %s |\n", time,
			      format_percent_of(headline->idle_ns[order[i]], headline->span_ns),
			      idle_labels[order[i]]);
	}
	put_query(out, summary_query(QUERY_IDLE)->sql);
}

static void put_all(struct output *out, const struct run *run)
{
	put_head(out, run);
	put_findings_brief(out, run);
	if (run->needs.ranks)
		put_ranks(out, run);
	put_mpi(out, run);
	put_modules(out, run);
	if (run->sums->events.work.gpu_ns)
		put_tables(out, run);
	put_idle(out, run);
	for (int l = 0; l < TRUST_LINES; l++) {
		output_text(out, l ? "- " : "## Trust\n\n- ", l ? 2 : 12);
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
	.what = "Write the headline, the findings and the largest sums as Markdown of at most 8 "
		"KB, "
		"with the queries that give the same numbers",
	.uses = USES_PATHS | USES_FINDINGS,
	.analyses = (const struct exporter *const[]){&analysis_steps, NULL},
	.end = brief_end,
};
