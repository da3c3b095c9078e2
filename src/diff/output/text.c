/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result as text for a terminal: verdict, rules with findings, and tables of changes.
 */
#include <string.h>

#include "cli/message.h"
#include "diff/base/text.h"
#include "diff/compare/comparison.h"
#include "diff/output/diff_output.h"
#include "diff/pair/pair.h"
#include "diff/rules/verdict.h"
#include "diff/compare/row_text.h"
#include "diff/base/level.h"
#include "log/base/compare.h"

#define COLUMNS_DEFAULT 120
#define NUMBERS_COLUMNS 79 /* columns of a row before its name */
#define RULE_SHOWN	76 /* bytes of a rule in a table */
#define FINDING_INDENT	13
#define UNKNOWN_SHOWN	2
#define DEVICES_SHOWN	16

struct text {
	struct output *out;
	const struct diff_result *result;
};

static const char *paint(const struct text *t, const char *code)
{
	return t->out->has_colours ? code : "";
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

		size_t count = 0;

		for (size_t i = 0; i < set->count; i++)
			count += !set->runs[i]->history;
		output_format(t->out, "%-4s  %zu run%s  %s", names[s], count,
			      count == 1 ? " " : "s", format_argument(t->result->arguments[s]));
		if (set->count > count)
			output_format(t->out, ", and %zu older for the noise estimate",
				      set->count - count);
		output_char(t->out, '\n');
		if (!shown && set->count)
			shown = set->runs[0];
	}
	if (!shown)
		return;
	output_format(t->out, "      %s", shown->title[0] ? shown->title : "[unknown program]");
	for (size_t d = 0; d < shown->machine.device_count && d < DEVICES_SHOWN; d++)
		output_format(t->out, "%s%s", d ? " + " : " on ",
			      shown->machine.devices[d][0] ? shown->machine.devices[d]
							   : "[unknown GPU]");
	if (shown->machine.device_count > DEVICES_SHOWN)
		output_format(t->out, " and %zu more", shown->machine.device_count - DEVICES_SHOWN);
	if (run_profile_has_iterations(shown))
		output_format(t->out, ", %llu iterations%s%s%s, values per iteration",
			      (unsigned long long)shown->iterations.used_count,
			      shown->iterations.name[0] ? " of \"" : "", shown->iterations.name,
			      shown->iterations.name[0] ? "\"" : "");
	else
		output_format(t->out, ", values of %s",
			      t->result->comparison ? comparison_values(t->result->comparison)
						    : "whole runs");
	output_format(t->out, "%s\n", shown->machine.is_simulated ? ", simulated GPU" : "");
}

static void put_verdict(const struct text *t)
{
	static const char *const words[] = {"PASS", "REGRESSION", "INCONCLUSIVE"};
	static const char *const colours[] = {GREEN, RED, BOLD};
	const struct verdict *v = t->result->verdict;

	output_format(t->out, "\n%s%s%s\n", paint(t, colours[v->outcome]), words[v->outcome],
		      paint(t, PLAIN));
	for (size_t p = 0; p < v->problems.count; p++)
		output_format(t->out, "  %s\n", v->problems.lines[p]);
}

static size_t columns_of(const struct text *t)
{
	return t->out->columns ?: output_columns_wanted() ?: COLUMNS_DEFAULT;
}

/* Writes where a call path is in the source, the place in the program's own file first. */
static void put_places(const struct text *t, const struct comparison_row *row, int indent)
{
	const struct profile_entry *entry = change_entry(row);
	size_t room = columns_of(t) - (size_t)indent - strlen("in "), used = 0, count;
	bool is_taken_out = false;
	const char *places[SOURCE_PLACES_MAX];

	if (!entry || !level_specs[row->level].has_frames)
		return;
	count = source_places(entry, places);
	for (size_t i = 0; i < count; i++) {
		const char *own = places[i];

		if (!source_place_is_own(entry, own))
			continue;
		memmove(&places[1], &places[0], i * sizeof(*places));
		places[0] = own;
		is_taken_out = i > 0;
		break;
	}
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(places[i]) + (i ? strlen(" < ") : 0);

		if (i && used + length > room)
			break;
		output_format(t->out, "%*s%s%s", i ? 0 : indent, "",
			      !i		       ? "in "
			      : i == 1 && is_taken_out ? ": "
						       : " < ",
			      text_without_middle(places[i], room));
		used += length;
	}
	if (count)
		output_char(t->out, '\n');
}

/* The innermost frame of a row. */
static const char *leaf_of(const struct comparison_row *row)
{
	const struct profile_entry *entry = change_entry(row);

	return entry && entry->frame_count ? frame_name(entry->frames[entry->frame_count - 1])
					   : row->key;
}

static void put_findings(const struct text *t, const struct rule_result *result)
{
	static const char *const marks[] = {"ok", "worse", "?"};
	const struct verdict *v = t->result->verdict;
	size_t known = 0, shown;

	while (known < result->finding_count &&
	       v->findings[result->first_finding + known].outcome == OUTCOME_FAIL)
		known++;
	/* Inconclusive rows mostly have the same reason: show a few examples. */
	shown = smaller(known + UNKNOWN_SHOWN, t->result->top_count);
	shown = smaller(shown, result->finding_count);
	for (size_t f = result->first_finding; f < result->first_finding + shown; f++) {
		const struct rule_finding *finding = &v->findings[f];
		const struct rule *allowed = finding->allowed_by;
		bool is_of_row = finding->row && result->rule->is_each;
		const char *name = is_of_row ? leaf_of(finding->row) : finding->what;

		output_format(t->out, "      %-5s  %s\n", marks[finding->outcome],
			      text_without_middle(name, columns_of(t) - FINDING_INDENT));
		if (is_of_row)
			put_places(t, finding->row, FINDING_INDENT);
		output_format(t->out, "             %s\n", finding->why);
		if (allowed)
			output_format(t->out, "             allowed by %s%s%s\n", allowed->origin,
				      allowed->reason ? ": " : "",
				      allowed->reason ? allowed->reason : "");
	}
	if (shown < result->finding_count)
		output_format(t->out, "      and %zu more\n", result->finding_count - shown);
}

static void put_rules(const struct text *t)
{
	static const char *const marks[] = {"pass", "FAIL", "?"};
	static const char *const colours[] = {GREEN, RED, BOLD};
	const struct verdict *v = t->result->verdict;

	for (size_t r = 0; r < v->result_count; r++) {
		const struct rule_result *result = &v->results[r];

		output_format(t->out, "  %s%-4s%s  %s\n        %s\n",
			      paint(t, colours[result->outcome]), marks[result->outcome],
			      paint(t, PLAIN), result->rule->text, result->text);
		/* The text of a rule about a sum already contains its finding. */
		if (result->rule->is_each || result->outcome == OUTCOME_PASS)
			put_findings(t, result);
	}
}

static bool is_shown(const struct comparison_row *row)
{
	for (int m = 0; m < METRICS; m++)
		if (row->effects[m].test.is_significant)
			return true;
	return row->is_renamed;
}

static enum metric main_metric(const struct comparison_row *row)
{
	return row->level == LEVEL_TOTAL && row->unit == UNIT_COUNT ? METRIC_COUNT : METRIC_VALUE;
}

/* Threads wait at the same time, so that their sum may exceed the time of the run. */
static const char *threads_of(const struct comparison_row *row)
{
	return row->level == LEVEL_TOTAL && !strcmp(row->key, "waits") ? " (sum over threads)" : "";
}

/* Whether a finding about the row is allowed. */
static bool is_allowed(const struct verdict *v, const struct comparison_row *row)
{
	for (size_t f = 0; f < v->finding_count; f++)
		if (v->findings[f].row == row && v->findings[f].allowed_by)
			return true;
	return false;
}

/*
 * Why a row that became worse does not fail a passing verdict. "" if it is not judged, for a reason
 * that rules or notes state.
 */
static const char *excuse_of(const struct text *t, const struct comparison_row *row, bool is_worse)
{
	const struct effect *effect = &row->effects[main_metric(row)];
	const struct verdict *v = t->result->verdict;
	bool has_rule = false;

	if (!is_worse || v->outcome != OUTCOME_PASS || is_allowed(v, row))
		return "";
	for (size_t r = 0; r < v->result_count; r++) {
		const struct rule *rule = v->results[r].rule;

		if (!rule_matches_row(rule, row))
			continue;
		has_rule = true;
		if (rule->metric == main_metric(row) && !rule->is_counting &&
		    rule->kind == RULE_LIMIT &&
		    !(rule_convert_ratio(rule, effect, effect->net.ratio) > rule->limit))
			return text_print("  (within %.*s)", RULE_SHOWN, rule->text);
	}
	return has_rule ? "" : "  (no rule is about it)";
}

/* title: of the table that begins with this row; NULL: another row is before it. */
static void text_put_row(const struct text *t, const struct comparison_row *row, const char *title)
{
	size_t columns = columns_of(t);
	const char *name = leaf_of(row);
	const char *note = row_basis_note(t->result->comparison, row);
	bool is_beside = NUMBERS_COLUMNS + strlen(name) <= columns;
	enum metric metric = main_metric(row);
	const struct effect *effect = &row->effects[metric];
	enum unit unit = row_unit(row, metric);
	const char *words = row_change_text(row);
	bool is_worse = effect->test.is_significant && effect->change > 0.0;
	const char *excuse = excuse_of(t, row, is_worse);

	if (title)
		output_format(t->out, "\n%s%s%s\n%11s %11s %11s %9s %10s\n", paint(t, BOLD), title,
			      paint(t, PLAIN), "base", "new", "change", "change %", "detectable");
	output_format(t->out, "%11s %11s %11s %s%9s%s %10s", format_amount(unit, effect->base),
		      format_amount(unit, effect->new), format_amount(unit, effect->change),
		      paint(t, is_worse			     ? RED
			       : effect->test.is_significant ? GREEN
							     : ""),
		      format_ratio(effect->ratio), paint(t, PLAIN),
		      format_percent(effect->net.detectable));
	if (is_beside)
		output_format(t->out, "  %-20s %s%s%s%s", words, name, threads_of(row), note,
			      excuse);
	else if (*words)
		output_format(t->out, "  %s", words);
	output_char(t->out, '\n');
	if (!is_beside)
		output_format(t->out, "  %s%s%s\n", text_without_middle(name, columns - 2), note,
			      excuse);
	put_places(t, row, 4);
	if (row->is_renamed && row->shown[SIDE_BASE])
		output_format(t->out, "    was %s\n",
			      path_name(row->shown[SIDE_BASE], columns - strlen("    was ")));
}

/* Totals are shown even if they did not change. */
static void put_totals(const struct text *t)
{
	const struct comparison *c = t->result->comparison;
	const char *title = totals_title(c);

	for (size_t i = 0; i < total_count; i++) {
		const struct comparison_row *row =
			comparison_find(c, LEVEL_TOTAL, total_specs[i].name);

		if (!row || !row_has_values(row))
			continue;
		text_put_row(t, row, title);
		title = NULL;
	}
}

/* Show only significant changes. */
static void put_level(const struct text *t, enum level level)
{
	const struct comparison *c = t->result->comparison;
	size_t count = 0, top = t->result->top_count;

	for (size_t i = c->first_rows[level]; i < c->first_rows[level + 1]; i++) {
		const struct comparison_row *row = &c->rows[i];

		if (is_shown(row) && row_has_values(row) && ++count <= top)
			text_put_row(t, row, count == 1 ? level_specs[level].title : NULL);
	}
	if (count > top)
		output_format(t->out, "  and %zu more; use --top\n", count - top);
}

/* Rules cannot judge one run of each side. Shows what changed instead. */
static int put_pair(struct output *out, const struct diff_result *result)
{
	const struct problems *problems = &result->verdict->problems;
	const struct pair_options options = {.paths = {result->sets[SIDE_BASE].runs[0]->origin,
						       result->sets[SIDE_NEW].runs[0]->origin},
					     .top_count = result->top_count,
					     .all_option = "--top"};
	int status = pair_write(out, &options, NULL);

	for (size_t n = 0; n < problems->count; n++)
		output_format(out, "%sNote: %s\n", n ? "" : "\n", problems->lines[n]);
	return status < STATUS_FAILED ? 0 : -EIO;
}

int diff_output_text(struct output *out, const void *context)
{
	const struct diff_result *result = context;
	struct text t = {out, result};

	if (result->is_pair)
		return put_pair(out, result);
	put_runs(&t);
	put_verdict(&t);
	if (!result->comparison)
		return 0;
	put_rules(&t);
	put_totals(&t);
	for (int level = 0; level < LEVELS; level++)
		if (level != LEVEL_TOTAL)
			put_level(&t, (enum level)level);
	for (size_t n = 0; n < result->verdict->notes.count; n++)
		output_format(out, "%sNote: %s\n", n ? "" : "\n", result->verdict->notes.lines[n]);
	return 0;
}
