/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result for people, on a terminal: the verdict, what broke which rule, then tables of what changed.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff_output.h"
#include "diff/format.h"

#define COLUMNS_DEFAULT 120
#define NUMBERS_COLUMNS 75 /* of a row, before its name */
#define FINDING_INDENT	13
#define UNKNOWN_SHOWN	2
#define NAME_COLUMNS	24 /* at least */

struct text {
	FILE *out;
	const struct diff_result *result;
};

static const char *paint(const struct text *t, const char *code)
{
	return t->result->has_colours ? code : "";
}

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

static void put_runs(const struct text *t)
{
	static const char *const names[] = {"BASE", "NEW"};
	const struct run_profile *shown = NULL;

	for (int s = 0; s < SIDES; s++) {
		const struct run_set *set = &t->result->sets[s];

		fprintf(t->out, "%-4s  %zu run%s  %s\n", names[s], set->count,
			set->count == 1 ? " " : "s", t->result->arguments[s]);
		if (!shown && set->count)
			shown = set->runs[0];
	}
	if (!shown)
		return;
	fprintf(t->out, "      %s", shown->program[0] ? shown->program : "[unknown program]");
	for (size_t d = 0; d < shown->device_count; d++)
		fprintf(t->out, "%s%s", d ? " + " : " on ",
			shown->devices[d].name[0] ? shown->devices[d].name : "[unknown GPU]");
	if (run_profile_has_iterations(shown))
		fprintf(t->out, ", for one of %llu iterations%s%s%s",
			(unsigned long long)shown->used_count,
			shown->iteration_name[0] ? " \"" : "", shown->iteration_name,
			shown->iteration_name[0] ? "\"" : "");
	fprintf(t->out, "%s\n", shown->is_simulated ? ", simulated GPU" : "");
}

static void put_verdict(const struct text *t)
{
	static const char *const words[] = {"PASS", "REGRESSION", "COULD NOT JUDGE"};
	static const char *const colours[] = {GREEN, RED, BOLD};
	const struct verdict *v = t->result->verdict;

	fprintf(t->out, "\n%s%s%s\n", paint(t, colours[v->outcome]), words[v->outcome],
		paint(t, PLAIN));
	for (size_t p = 0; p < v->problems.count; p++)
		fprintf(t->out, "  %s\n", v->problems.lines[p]);
}

/* How many bytes of a finding's name there is room for: what is left out is outermost. */
static int fitting(const struct text *t, const char *what)
{
	size_t columns = t->result->columns ? t->result->columns : COLUMNS_DEFAULT;
	size_t room = columns > 2 * FINDING_INDENT ? columns - FINDING_INDENT : FINDING_INDENT;
	size_t length = strlen(what);

	if (length <= room)
		return (int)length;
	length = room - strlen("...");
	while (length > 0 && (what[length] & 0xc0) == 0x80)
		length--;
	return (int)length;
}

static void put_findings(const struct text *t, const struct rule_result *result)
{
	static const char *const marks[] = {"ok", "worse", "?"};
	const struct verdict *v = t->result->verdict;
	size_t known = 0, shown;

	while (known < result->finding_count &&
	       v->findings[result->first_finding + known].outcome == OUTCOME_FAIL)
		known++;
	/* (What cannot be judged is mostly so for one reason: some examples will do.) */
	shown = known + UNKNOWN_SHOWN;
	shown = shown < t->result->top_count ? shown : t->result->top_count;
	shown = shown < result->finding_count ? shown : result->finding_count;

	for (size_t f = result->first_finding; f < result->first_finding + shown; f++) {
		const struct finding *finding = &v->findings[f];
		const struct rule *allowed = finding->allowed_by;

		fprintf(t->out, "      %-5s  %.*s%s\n             %s\n", marks[finding->outcome],
			fitting(t, finding->what), finding->what,
			finding->what[fitting(t, finding->what)] ? "..." : "", finding->why);
		if (allowed)
			fprintf(t->out, "             allowed by %s%s%s\n", allowed->origin,
				allowed->reason ? ": " : "",
				allowed->reason ? allowed->reason : "");
	}
	if (shown < result->finding_count)
		fprintf(t->out, "      and %zu more\n", result->finding_count - shown);
}

static void put_rules(const struct text *t)
{
	static const char *const marks[] = {"pass", "FAIL", "?"};
	static const char *const colours[] = {GREEN, RED, BOLD};
	const struct verdict *v = t->result->verdict;

	for (size_t r = 0; r < v->result_count; r++) {
		const struct rule_result *result = &v->results[r];

		fprintf(t->out, "  %s%-4s%s  %s\n        %s\n", paint(t, colours[result->outcome]),
			marks[result->outcome], paint(t, PLAIN), result->rule->text, result->text);
		/* (The sum of a rule is what its text has said already.) */
		if (result->rule->is_each || result->outcome == OUTCOME_PASS)
			put_findings(t, result);
	}
}

static bool is_shown(const struct comparison_row *row)
{
	for (int m = 0; m < METRICS; m++)
		if (row->effects[m].is_significant)
			return true;
	return row->is_moved;
}

/* The metric that tells most of a row: what it takes in all; else how often it is. */
static enum metric main_metric(const struct comparison_row *row)
{
	if (row->level == LEVEL_TOTAL && row->unit == UNIT_COUNT)
		return METRIC_COUNT;
	return !row->effects[METRIC_VALUE].is_significant &&
			       row->effects[METRIC_COUNT].is_significant
		       ? METRIC_COUNT
		       : METRIC_VALUE;
}

static int put_row(const struct text *t, const struct comparison_row *row, bool is_first)
{
	size_t columns = t->result->columns ? t->result->columns : COLUMNS_DEFAULT;
	enum metric metric = main_metric(row);
	const struct effect *effect = &row->effects[metric];
	enum unit unit = format_unit(row, metric);
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], change[AMOUNT_BYTES], ratio[AMOUNT_BYTES];
	char seen[AMOUNT_BYTES], words[64];
	bool is_worse = effect->is_significant && effect->change > 0.0;
	char *name =
		format_row(row, columns > NUMBERS_COLUMNS + NAME_COLUMNS ? columns - NUMBERS_COLUMNS
									 : NAME_COLUMNS);

	if (!name)
		return -ENOMEM;
	if (is_first)
		fprintf(t->out, "%11s %11s %11s %9s %9s\n", "before", "after", "change", "in %",
			"could see");
	format_change(words, sizeof(words), row);
	fprintf(t->out, "%11s %11s %11s %s%9s%s %9s  %-17s %s\n",
		format_amount(base, unit, effect->base), format_amount(new, unit, effect->new),
		format_amount(change, unit, effect->change),
		paint(t, is_worse		  ? RED
			 : effect->is_significant ? GREEN
						  : ""),
		format_ratio(ratio, effect->ratio), paint(t, PLAIN),
		format_percent(seen, effect->detectable), words, name);
	free(name);
	return 0;
}

/* The whole is shown in any case, and of the rest what is no chance. */
static int put_level(const struct text *t, enum level level)
{
	const struct comparison *c = t->result->comparison;
	size_t shown = 0, hidden = 0;
	int error = 0;

	for (size_t i = c->first_rows[level]; i < c->first_rows[level + 1] && !error; i++) {
		const struct comparison_row *row = &c->rows[i];

		if (level != LEVEL_TOTAL && !is_shown(row))
			continue;
		if (row->effects[METRIC_VALUE].base == 0.0 && row->effects[METRIC_VALUE].new == 0.0)
			continue;
		if (shown >= t->result->top_count) {
			hidden++;
			continue;
		}
		if (!shown)
			fprintf(t->out, "\n%s%s%s\n", paint(t, BOLD), level_specs[level].title,
				paint(t, PLAIN));
		error = put_row(t, row, !shown++);
	}
	if (hidden)
		fprintf(t->out, "  and %zu more; see --top\n", hidden);
	return error;
}

static int write_text(FILE *out, const struct diff_result *result)
{
	struct text t = {out, result};
	int error = 0;

	put_runs(&t);
	put_verdict(&t);
	if (!result->comparison)
		return 0;
	put_rules(&t);
	for (int level = 0; level < LEVELS && !error; level++)
		error = put_level(&t, (enum level)level);
	for (size_t n = 0; n < result->comparison->notes.count; n++)
		fprintf(out, "%sNote: %s\n", n ? "" : "\n", result->comparison->notes.lines[n]);
	return error;
}

const struct diff_output diff_output_text = {
	.name = "text",
	.what = "verdict and tables for people (what is done if no output is named, on stdout)",
	.value = "FILE",
	.write = write_text,
};
