/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison as Markdown for a pull request: verdict, rules, and the largest changes. Details
 * are collapsed. The text stays well below the size limit of a comment.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/text.h"
#include "diff/compare/comparison.h"
#include "diff/output/diff_output.h"
#include "diff/compare/row_text.h"
#include "diff/base/level.h"

#define MARK		"<!-- xtrace gate -->"
#define ARROW		"\xe2\x86\x92"
#define TOP_COUNT	8  /* visible changes */
#define ALL_COUNT	40 /* changes including collapsed ones */
#define NAME_COLUMNS	72 /* bytes of a name in a table */
#define FRAME_BYTES_MAX 120
#define PATHS_BYTES_MAX 16000 /* of full call paths */
#define FRAMES_MAX	60    /* of a full call path */

static const char *const symbols[] = {
	[OUTCOME_PASS] = "\xf0\x9f\x9f\xa2",
	[OUTCOME_FAIL] = "\xf0\x9f\x94\xb4",
	[OUTCOME_UNKNOWN] = "\xf0\x9f\x9f\xa1",
};

static const char *const headings[] = {
	[OUTCOME_PASS] = "no regression",
	[OUTCOME_FAIL] = "regression",
	[OUTCOME_UNKNOWN] = "inconclusive",
};

/* Escapes markup. */
static const char *plain(const char *text)
{
	size_t bytes;
	char *escaped;
	FILE *stream = xt_open_memstream(&escaped, &bytes);

	for (; *text; text++) {
		if (!strncmp(text, "->", 2)) {
			fputs(ARROW, stream);
			text++;
			continue;
		}
		if (strchr("\\`*_{}[]<>|#~&", *text))
			putc('\\', stream);
		putc(*text == '\n' ? ' ' : *text, stream);
	}
	xt_close_memstream(stream);
	return text_keep(escaped);
}

/* A name as code that is valid in a table, truncated. */
static const char *code(const char *text, size_t length_max)
{
	static const char *const escapes[128] = {['|'] = "\\|", ['`'] = "'", ['\n'] = "'"};
	size_t length = utf8_prefix(text, length_max);
	const char *shown = text_escaped(text_keep(xt_strndup(text, length)), escapes);

	return text_print("`%s%s`", shown, text[length] ? "\xe2\x80\xa6" : "");
}

/* "12.47 ms → 12.99 ms GPU time per iteration, +4.2 %" */
static void put_headline(struct output *out, const struct comparison *c)
{
	const struct comparison_row *row = comparison_find(c, LEVEL_TOTAL, "gpu-time");
	const struct effect *effect;
	const char *interval;

	if (!row)
		return;
	effect = &row->effects[METRIC_VALUE];
	interval = effect_interval(effect);
	output_format(out, "**%s \xe2\x86\x92 %s** GPU time %s, **%s**",
		      format_amount(UNIT_NS, effect->base), format_amount(UNIT_NS, effect->new),
		      c->has_iterations ? "per iteration" : "per run", format_ratio(effect->ratio));
	if (*interval)
		output_format(out, " (%s)", interval);
	output_format(out, "%s. Values of %s.\n\n", effect_doubt(effect), comparison_values(c));
}

static void put_rules(struct output *out, const struct verdict *verdict)
{
	if (!verdict->result_count)
		return;
	output_string(out, "| | rule | |\n| --- | --- | --- |\n");
	for (size_t r = 0; r < verdict->result_count; r++) {
		const struct rule_result *result = &verdict->results[r];

		output_format(out, "| %s | %s | %s |\n", symbols[result->outcome],
			      code(result->rule->text, SIZE_MAX), plain(result->text));
	}
	output_char(out, '\n');
}

/* List allowed regressions, so that they are not forgotten. */
static void put_allowed(struct output *out, const struct verdict *verdict)
{
	size_t count = 0;

	for (size_t f = 0; f < verdict->finding_count; f++) {
		const struct rule_finding *finding = &verdict->findings[f];
		const struct rule *allowed = finding->allowed_by;

		if (!allowed)
			continue;
		output_format(out, "- allowed: %s, %s, by %s of %s%s%s\n",
			      code(finding->what, NAME_COLUMNS), plain(finding->why),
			      code(allowed->text, SIZE_MAX), plain(allowed->origin),
			      allowed->reason ? ": " : "",
			      allowed->reason ? plain(allowed->reason) : "");
		count++;
	}
	if (count)
		output_char(out, '\n');
}

static void put_problems(struct output *out, const struct problems *problems)
{
	for (size_t p = 0; p < problems->count; p++)
		output_format(out, "- %s\n", plain(problems->lines[p]));
	if (problems->count)
		output_char(out, '\n');
}

static void put_numbers(struct output *out, const struct comparison_row *row)
{
	const struct effect *effect = &row->effects[METRIC_VALUE];
	const char *interval = effect_interval(effect);

	output_format(out, "| %s%s | %s " ARROW " %s | **%s**%s%s%s | %s | ",
		      effect->change > 0 ? "+" : "", format_amount(row->unit, effect->change),
		      format_amount(row->unit, effect->base), format_amount(row->unit, effect->new),
		      format_ratio(effect->ratio), *interval ? " (" : "", interval,
		      *interval ? ")" : "", plain(row_change_text(row)));
}

/* One table row: amount, change, name, places. */
static void put_path_row(struct output *out, const struct comparison_row *row)
{
	const struct profile_entry *entry = change_entry(row);
	const char *places[SOURCE_PLACES_MAX];
	size_t count = source_places(entry, places);

	put_numbers(out, row);
	output_format(out, "%s | ",
		      code(frame_name(entry->frames[entry->frame_count - 1]), NAME_COLUMNS));
	for (size_t p = 0; p < count; p++)
		output_format(out, "%s%s", p ? " \xe2\x80\xb9 " : "",
			      code(places[p], NAME_COLUMNS));
	output_string(out, " |\n");
}

#define PATH_HEAD                                                                                  \
	"| change | base \xe2\x86\x92 new | | | what | where |\n"                                  \
	"| ---: | ---: | :--- | --- | --- | --- |\n"
#define OTHER_HEAD                                                                                 \
	"| change | base \xe2\x86\x92 new | | | what |\n"                                          \
	"| ---: | ---: | :--- | --- | --- |\n"

/* Returns the number of bytes written. */
static size_t put_call_path(struct output *out, const struct comparison_row *row)
{
	const struct profile_entry *entry = change_entry(row);
	uint32_t first = entry->frame_count > FRAMES_MAX ? entry->frame_count - FRAMES_MAX : 0;
	size_t bytes = 0;

	output_format(out, "%s\n", format_ratio(row->effects[METRIC_VALUE].ratio));
	if (first)
		output_format(out, "    (%u outer frames omitted)\n", first);
	for (uint32_t f = first; f < entry->frame_count; f++) {
		const char *frame = frame_name(entry->frames[f]);
		size_t length = utf8_prefix(frame, FRAME_BYTES_MAX);

		/* The indent prevents a frame from ending the code block. */
		output_format(out, "    %.*s\n", (int)length, frame);
		bytes += length + 5;
	}
	return bytes;
}

static void put_paths(struct output *out, const struct comparison *c)
{
	size_t count, shown, bytes = 0;
	const struct comparison_row **rows = changes_list(c, true, &count);

	shown = count < TOP_COUNT ? count : TOP_COUNT;
	if (count)
		output_string(out, "#### Largest changes\n\n" PATH_HEAD);
	else
		output_string(out, comparison_measures_noise(c)
					   ? "No call path changed significantly.\n\n"
					   : "There are too few runs to measure noise, so it is "
					     "unknown whether a call path changed.\n\n");
	for (size_t r = 0; r < shown; r++)
		put_path_row(out, rows[r]);
	if (count)
		output_char(out, '\n');
	if (count > shown) {
		output_format(
			out,
			"<details><summary>%zu more call paths changed</summary>\n\n" PATH_HEAD,
			count - shown);
		for (size_t r = shown; r < count && r < ALL_COUNT; r++)
			put_path_row(out, rows[r]);
		if (count > ALL_COUNT)
			output_format(out, "\n%zu smaller changes omitted.\n", count - ALL_COUNT);
		output_string(out, "\n</details>\n\n");
	}
	if (count) {
		output_string(out, "<details><summary>Full call paths</summary>\n\n~~~~~~~~text\n");
		for (size_t r = 0; r < shown && bytes < PATHS_BYTES_MAX; r++)
			bytes += put_call_path(out, rows[r]);
		output_string(out, "~~~~~~~~\n\n</details>\n\n");
	}
	free(rows);
}

static void put_others(struct output *out, const struct comparison *c)
{
	size_t count, kept = 0;
	const struct comparison_row **rows = changes_list(c, false, &count);

	/* Totals have their own table. */
	for (size_t r = 0; r < count; r++)
		if (rows[r]->level != LEVEL_TOTAL)
			rows[kept++] = rows[r];
	count = kept;
	if (count)
		output_format(out,
			      "<details><summary>%zu changes by kernel, function, range, copy, "
			      "memory and idle time</summary>\n\n" OTHER_HEAD,
			      count);
	for (size_t r = 0; r < count && r < ALL_COUNT; r++) {
		put_numbers(out, rows[r]);
		output_format(out, "%s: %s%s |\n", row_level(rows[r]),
			      code(frame_name(change_entry(rows[r])->frames[0]), NAME_COLUMNS),
			      row_basis_note(c, rows[r]));
	}
	if (count)
		output_string(out, "\n</details>\n\n");
	free(rows);
}

static void put_totals(struct output *out, const struct comparison *c)
{
	output_format(out, "<details><summary>%s</summary>\n\n" OTHER_HEAD, totals_title(c));
	for (size_t n = 0; n < total_count; n++) {
		const struct comparison_row *row =
			comparison_find(c, LEVEL_TOTAL, total_specs[n].name);

		if (!row)
			continue;
		put_numbers(out, row);
		output_format(out, "%s%s |\n", code(change_entry(row)->frames[0], NAME_COLUMNS),
			      row_basis_note(c, row));
	}
	output_string(out, "\n</details>\n\n");
}

static void put_side(struct output *out, const struct diff_result *result, enum side side)
{
	const struct comparison *c = result->comparison;
	const struct run_profile *run = comparison_first_run(c, side);

	output_format(out, "- %s: %zu run%s of %s", side == SIDE_BASE ? "base" : "new",
		      c->side_counts[side], c->side_counts[side] == 1 ? "" : "s",
		      code(format_argument(result->arguments[side]), SIZE_MAX));
	if (run) {
		output_format(
			out, ", %s on %s", code(run->title, NAME_COLUMNS),
			plain(run->machine.device_count ? run->machine.device : "unknown GPU"));
		if (*run->machine.host)
			output_format(out, " (%s)", plain(run->machine.host));
		if (isfinite(run->machine.clock_mhz))
			output_format(out, ", SM clock %.0f MHz", run->machine.clock_mhz);
	}
	output_char(out, '\n');
}

static void put_method(struct output *out, const struct diff_result *result)
{
	const struct comparison *c = result->comparison;
	size_t history = c->run_count - c->judged_count;

	output_string(out, "<details><summary>Method</summary>\n\n");
	for (int s = 0; s < SIDES; s++)
		put_side(out, result, (enum side)s);
	if (history)
		output_format(out,
			      "- %zu older runs of the baseline contribute to the noise estimate\n",
			      history);
	output_format(
		out,
		"- false positive rate of each rule: at most %.3g %%\n"
		"- confidence intervals: Student's t, net of the change common to all paths\n",
		100 * c->alpha);
	output_string(out, "\n</details>\n");
}

int diff_output_markdown(struct output *out, const void *context)
{
	const struct diff_result *result = context;
	const struct verdict *verdict = result->verdict;

	output_format(out, MARK "\n### %s GPU time: %s\n\n", symbols[verdict->outcome],
		      verdict->outcome == OUTCOME_PASS && verdict->grown_count
			      ? "no rule failed"
			      : headings[verdict->outcome]);
	if (result->comparison)
		put_headline(out, result->comparison);
	put_problems(out, &verdict->problems);
	put_rules(out, verdict);
	put_allowed(out, verdict);
	if (result->comparison) {
		put_problems(out, &result->verdict->notes);
		put_paths(out, result->comparison);
		put_others(out, result->comparison);
		put_totals(out, result->comparison);
		put_method(out, result);
	}
	return 0;
}
