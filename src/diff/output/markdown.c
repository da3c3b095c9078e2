/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison as Markdown for a pull request: verdict, rules, and the largest changes. Details
 * are collapsed. The text stays well below the size limit of a comment.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
#define CHANGE_BYTES	64
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
static void put_text(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (!strncmp(text, "->", 2)) {
			fputs(ARROW, file);
			text++;
			continue;
		}
		if (strchr("\\`*_{}[]<>|#~&", *text))
			fputc('\\', file);
		fputc(*text == '\n' ? ' ' : *text, file);
	}
}

/* Writes a name as code that is valid in a table, truncated. */
static void put_code(FILE *file, const char *text, size_t length_max)
{
	size_t length = utf8_prefix(text, length_max);

	fputc('`', file);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '|')
			fputc('\\', file);
		fputc(text[i] == '`' || text[i] == '\n' ? '\'' : text[i], file);
	}
	fprintf(file, "%s`", text[length] ? "\xe2\x80\xa6" : "");
}

static const struct comparison_row *find_total(const struct comparison *c, const char *name)
{
	return comparison_find(c, LEVEL_TOTAL, name);
}

/* "12.47 ms → 12.99 ms GPU time per iteration, +4.2 %" */
static void put_headline(FILE *file, const struct comparison *c)
{
	const struct comparison_row *row = find_total(c, "gpu-time");
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES], interval[INTERVAL_BYTES];
	const struct effect *effect;

	if (!row)
		return;
	effect = &row->effects[METRIC_VALUE];
	fprintf(file, "**%s \xe2\x86\x92 %s** GPU time %s, **%s**",
		format_amount(base, UNIT_NS, effect->base),
		format_amount(new, UNIT_NS, effect->new),
		c->has_iterations ? "per iteration" : "per run",
		format_ratio(ratio, effect->ratio));
	if (*effect_interval(interval, effect))
		fprintf(file, " (%s)", interval);
	fprintf(file, "%s. Values of %s.\n\n", effect_doubt(effect), comparison_values(c));
}

static void put_rules(FILE *file, const struct verdict *verdict)
{
	if (!verdict->result_count)
		return;
	fputs("| | rule | |\n| --- | --- | --- |\n", file);
	for (size_t r = 0; r < verdict->result_count; r++) {
		const struct rule_result *result = &verdict->results[r];

		fprintf(file, "| %s | ", symbols[result->outcome]);
		put_code(file, result->rule->text, SIZE_MAX);
		fputs(" | ", file);
		put_text(file, result->text);
		fputs(" |\n", file);
	}
	fputc('\n', file);
}

/* List allowed regressions, so that they are not forgotten. */
static void put_allowed(FILE *file, const struct verdict *verdict)
{
	size_t count = 0;

	for (size_t f = 0; f < verdict->finding_count; f++) {
		const struct finding *finding = &verdict->findings[f];
		const struct rule *allowed = finding->allowed_by;

		if (!allowed)
			continue;
		fputs("- allowed: ", file);
		put_code(file, finding->what, NAME_COLUMNS);
		fputs(", ", file);
		put_text(file, finding->why);
		fputs(", by ", file);
		put_code(file, allowed->text, SIZE_MAX);
		fputs(" of ", file);
		put_text(file, allowed->origin);
		if (allowed->reason) {
			fputs(": ", file);
			put_text(file, allowed->reason);
		}
		fputc('\n', file);
		count++;
	}
	if (count)
		fputc('\n', file);
}

static void put_problems(FILE *file, const struct problems *problems)
{
	for (size_t p = 0; p < problems->count; p++) {
		fputs("- ", file);
		put_text(file, problems->lines[p]);
		fputc('\n', file);
	}
	if (problems->count)
		fputc('\n', file);
}

static void put_numbers(FILE *file, const struct comparison_row *row, const char *change)
{
	const struct effect *effect = &row->effects[METRIC_VALUE];
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES], interval[INTERVAL_BYTES];
	char difference[AMOUNT_BYTES];

	effect_interval(interval, effect);
	fprintf(file, " %s%s | %s " ARROW " %s | **%s**%s%s%s | ", effect->change > 0 ? "+" : "",
		format_amount(difference, row->unit, effect->change),
		format_amount(base, row->unit, effect->base),
		format_amount(new, row->unit, effect->new), format_ratio(ratio, effect->ratio),
		*interval ? " (" : "", interval, *interval ? ")" : "");
	put_text(file, change);
	fputs(" | ", file);
}

/* One table row: amount, change, name, places. */
static void put_path_row(FILE *file, const struct comparison_row *row)
{
	const struct profile_entry *entry = change_entry(row);
	const char *places[SOURCE_PLACES_MAX];
	size_t count = source_places(entry, places);
	char change[CHANGE_BYTES];

	row_change_text(change, sizeof(change), row);
	fputc('|', file);
	put_numbers(file, row, change);
	put_code(file, frame_name(entry->frames[entry->frame_count - 1]), NAME_COLUMNS);
	fputs(" | ", file);
	for (size_t p = 0; p < count; p++) {
		fputs(p ? " \xe2\x80\xb9 " : "", file);
		put_code(file, places[p], NAME_COLUMNS);
	}
	fputs(" |\n", file);
}

#define PATH_HEAD                                                                                  \
	"| change | base \xe2\x86\x92 new | | | what | where |\n"                                  \
	"| ---: | ---: | :--- | --- | --- | --- |\n"
#define OTHER_HEAD                                                                                 \
	"| change | base \xe2\x86\x92 new | | | what |\n"                                          \
	"| ---: | ---: | :--- | --- | --- |\n"

/* Returns the number of bytes written. */
static size_t put_call_path(FILE *file, const struct comparison_row *row)
{
	const struct profile_entry *entry = change_entry(row);
	char ratio[AMOUNT_BYTES];
	uint32_t first = entry->frame_count > FRAMES_MAX ? entry->frame_count - FRAMES_MAX : 0;
	size_t bytes = 0;

	fprintf(file, "%s\n", format_ratio(ratio, row->effects[METRIC_VALUE].ratio));
	if (first)
		fprintf(file, "    (%u outer frames omitted)\n", first);
	for (uint32_t f = first; f < entry->frame_count; f++) {
		const char *frame = frame_name(entry->frames[f]);
		size_t length = utf8_prefix(frame, FRAME_BYTES_MAX);

		/* The indent prevents a frame from ending the code block. */
		fprintf(file, "    %.*s\n", (int)length, frame);
		bytes += length + 5;
	}
	return bytes;
}

static void put_paths(FILE *file, const struct comparison *c)
{
	size_t count, shown, bytes = 0;
	const struct comparison_row **rows = changes_list(c, true, &count);

	shown = count < TOP_COUNT ? count : TOP_COUNT;
	if (count)
		fputs("#### Largest changes\n\n" PATH_HEAD, file);
	else
		fputs(comparison_measures_noise(c)
			      ? "No call path changed significantly.\n\n"
			      : "There are too few runs to measure noise, so it "
				"is unknown whether a "
				"call path changed.\n\n",
		      file);
	for (size_t r = 0; r < shown; r++)
		put_path_row(file, rows[r]);
	if (count)
		fputc('\n', file);
	if (count > shown) {
		fprintf(file,
			"<details><summary>%zu more call paths changed</summary>\n\n" PATH_HEAD,
			count - shown);
		for (size_t r = shown; r < count && r < ALL_COUNT; r++)
			put_path_row(file, rows[r]);
		if (count > ALL_COUNT)
			fprintf(file, "\n%zu smaller changes omitted.\n", count - ALL_COUNT);
		fputs("\n</details>\n\n", file);
	}
	if (count) {
		fputs("<details><summary>Full call paths</summary>\n\n~~~~~~~~text\n", file);
		for (size_t r = 0; r < shown && bytes < PATHS_BYTES_MAX; r++)
			bytes += put_call_path(file, rows[r]);
		fputs("~~~~~~~~\n\n</details>\n\n", file);
	}
	free(rows);
}

static void put_others(FILE *file, const struct comparison *c)
{
	size_t count, kept = 0;
	const struct comparison_row **rows = changes_list(c, false, &count);
	char change[CHANGE_BYTES];

	/* Totals have their own table. */
	for (size_t r = 0; r < count; r++)
		if (rows[r]->level != LEVEL_TOTAL)
			rows[kept++] = rows[r];
	count = kept;
	if (count)
		fprintf(file,
			"<details><summary>%zu changes by kernel, function, range, copy, memory "
			"and "
			"idle time</summary>\n\n" OTHER_HEAD,
			count);
	for (size_t r = 0; r < count && r < ALL_COUNT; r++) {
		row_change_text(change, sizeof(change), rows[r]);
		fputc('|', file);
		put_numbers(file, rows[r], change);
		fprintf(file, "%s: ", row_level(rows[r]));
		put_code(file, frame_name(change_entry(rows[r])->frames[0]), NAME_COLUMNS);
		fprintf(file, "%s |\n", row_basis_note(c, rows[r]));
	}
	if (count)
		fputs("\n</details>\n\n", file);
	free(rows);
}

static void put_totals(FILE *file, const struct comparison *c)
{
	fprintf(file, "<details><summary>%s</summary>\n\n" OTHER_HEAD, totals_title(c));
	for (size_t n = 0; shown_totals[n]; n++) {
		const struct comparison_row *row = find_total(c, shown_totals[n]);
		char change[CHANGE_BYTES];

		if (!row)
			continue;
		row_change_text(change, sizeof(change), row);
		fputc('|', file);
		put_numbers(file, row, change);
		put_code(file, change_entry(row)->frames[0], NAME_COLUMNS);
		fprintf(file, "%s |\n", row_basis_note(c, row));
	}
	fputs("\n</details>\n\n", file);
}

static void put_side(FILE *file, const struct diff_result *result, enum side side)
{
	const struct comparison *c = result->comparison;
	const struct run_profile *run = comparison_first_run(c, side);
	char argument[ARGUMENT_BYTES];

	fprintf(file, "- %s: %zu run%s of ", side == SIDE_BASE ? "base" : "new",
		c->side_counts[side], c->side_counts[side] == 1 ? "" : "s");
	put_code(file, format_argument(argument, sizeof(argument), result->arguments[side]),
		 sizeof(argument));
	if (run) {
		fputs(", ", file);
		put_code(file, run->title, NAME_COLUMNS);
		fputs(" on ", file);
		put_text(file, run->device_count ? run->devices[0].name : "unknown GPU");
		if (*run->host) {
			fputs(" (", file);
			put_text(file, run->host);
			fputc(')', file);
		}
		if (isfinite(run->clock_mhz))
			fprintf(file, ", SM clock %.0f MHz", run->clock_mhz);
	}
	fputc('\n', file);
}

static void put_method(FILE *file, const struct diff_result *result)
{
	const struct comparison *c = result->comparison;
	size_t history = c->run_count - c->side_counts[SIDE_BASE] - c->side_counts[SIDE_NEW];

	fputs("<details><summary>Method</summary>\n\n", file);
	for (int s = 0; s < SIDES; s++)
		put_side(file, result, (enum side)s);
	if (history)
		fprintf(file, "- %zu older runs of the baseline contribute to the noise estimate\n",
			history);
	fprintf(file,
		"- false positive rate of each rule: at most %.3g %%\n"
		"- confidence intervals: Student's t, net of the change common to all paths\n",
		100 * c->alpha);
	fputs("\n</details>\n", file);
}

static int write_markdown(FILE *file, const void *context)
{
	const struct diff_result *result = context;
	const struct verdict *verdict = result->verdict;

	fprintf(file, MARK "\n### %s GPU time: %s\n\n", symbols[verdict->outcome],
		verdict->outcome == OUTCOME_PASS && verdict->grown_count
			? "no rule failed"
			: headings[verdict->outcome]);
	if (result->comparison)
		put_headline(file, result->comparison);
	put_problems(file, &verdict->problems);
	put_rules(file, verdict);
	put_allowed(file, verdict);
	if (result->comparison) {
		put_problems(file, &result->verdict->notes);
		put_paths(file, result->comparison);
		put_others(file, result->comparison);
		put_totals(file, result->comparison);
		put_method(file, result);
	}
	return 0;
}

const struct output_writer diff_output_markdown = {
	.name = "markdown",
	.help = "Write a report in Markdown, for a pull request",
	.write_file = write_markdown,
};
