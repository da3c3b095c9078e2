/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates all rules on the rows that they apply to, and combines their outcomes.
 */
#include "diff/rules/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/compare/row_text.h"
#include "log/base/compare.h"

/* Evaluates one rule after the other. */
struct evaluation {
	const struct comparison *c;
	const struct rules *rules;
	struct verdict *verdict;
	size_t judged_count; /* counts that --only-counts could judge */
	/* Of the current rule: */
	const struct comparison_row **rows; /* it applies to; room for all rows */
	size_t count;
	bool has_ignored; /* the rule matches other rows, which are ignored */
};

#define GROWN_SHARE 1e-3 /* minimum growth of a path, as a share of the GPU time */

/* Rows of ranges include the ranges within them. */
static bool is_nested_level(enum level level)
{
	return level == LEVEL_RANGE || level == LEVEL_SPAN;
}

static bool fits(const struct rule *rule, enum level level, const char *key)
{
	return rule->pattern ? rule_matches(rule->pattern, key, is_nested_level(level))
			     : !strcmp(rule->name, key);
}

bool rule_matches_row(const struct rule *rule, const struct comparison_row *row)
{
	if (rule->level != row->level &&
	    !(rule->level == LEVEL_RANGE && row->level == LEVEL_SPAN) &&
	    !(rule->level == LEVEL_COPY && row->level == LEVEL_BYTES))
		return false;
	/* A renamed row matches by either name. */
	return fits(rule, row->level, row->key) ||
	       (row->is_renamed && row->shown[SIDE_BASE] &&
		fits(rule, row->level, row->shown[SIDE_BASE]->key));
}

static bool is_ignored(const struct evaluation *e, const struct comparison_row *row)
{
	for (size_t r = 0; r < e->rules->count; r++)
		if (e->rules->list[r].kind == RULE_IGNORE &&
		    rule_matches_row(&e->rules->list[r], row))
			return true;
	return false;
}

/* Is the row inside another row of the rule, so that the sum already includes it? */
static bool is_counted(const struct evaluation *e, const struct rule *rule,
		       const struct comparison_row *row)
{
	if (!is_nested_level(row->level))
		return false;
	for (size_t i = e->c->first_rows[row->level]; i < e->c->first_rows[row->level + 1]; i++) {
		const struct comparison_row *other = &e->c->rows[i];
		size_t length = strlen(other->key);

		if (!strncmp(row->key, other->key, length) && row->key[length] == ';' &&
		    rule_matches_row(rule, other))
			return true;
	}
	return false;
}

/* Finds the rows of a rule: set rows, count and has_ignored. */
static void find_rows(struct evaluation *e, const struct rule *rule)
{
	e->count = 0;
	e->has_ignored = false;
	for (size_t i = e->c->first_rows[rule->level]; i < e->c->first_rows[rule->level + 1]; i++) {
		const struct comparison_row *row = &e->c->rows[i];

		if (!rule_matches_row(rule, row))
			continue;
		if (is_ignored(e, row))
			e->has_ignored = true;
		else if (rule->is_each || !is_counted(e, rule, row))
			e->rows[e->count++] = row;
	}
}

static bool is_on(const struct evaluation *e, enum side side)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->rows[i]->shown[side])
			return true;
	return false;
}

static bool has_paths(const struct evaluation *e, enum side side)
{
	for (size_t i = e->c->first_rows[LEVEL_PATH]; i < e->c->first_rows[LEVEL_PATH + 1]; i++)
		if (e->c->rows[i].shown[side])
			return true;
	return false;
}

/*
 * The side, "BASE" or "NEW", that lacks rows which the rule needs, or NULL. Every run has totals. A
 * budget needs a row in NEW, because a missing row may have been renamed. Idle time of one cause
 * may vanish.
 */
static const char *missing_side(const struct evaluation *e, const struct rule *rule)
{
	bool needs_base = rule->level == LEVEL_TOTAL && rule->kind == RULE_LIMIT;
	bool needs_new = rule->level == LEVEL_TOTAL ||
			 (rule->kind == RULE_BUDGET && rule->level != LEVEL_IDLE);

	/* GPU work without any path means that the profile lacks paths. */
	needs_new |= rule->level == LEVEL_PATH && !has_paths(e, SIDE_NEW);
	if (needs_new && !is_on(e, SIDE_NEW))
		return "NEW";
	return needs_base && !is_on(e, SIDE_BASE) ? "BASE" : NULL;
}

/* The metric that shows where vanished work went. The cost per item does not show it. */
static enum metric moved_metric(const struct rule *rule)
{
	return rule->metric == METRIC_COUNT ? METRIC_COUNT : METRIC_VALUE;
}

/* The significant growth of a row, or 0. */
static double growth(const struct comparison_row *row, enum metric metric)
{
	const struct effect *effect = &row->effects[metric];

	if (!(effect->new > 0.0))
		return 0.0;
	if (!(effect->base > 0.0))
		return effect->new;
	return effect->test.is_significant ? fmax(effect->change, 0.0) : 0.0;
}

/* Does the program choose the names of these rows, so that they can change? */
static bool has_names(const struct rule *rule)
{
	return !rule->is_soft && (rule->level == LEVEL_PATH || rule->level == LEVEL_KERNEL ||
				  is_nested_level(rule->level));
}

/*
 * Would the rule fail if the growth of other rows belonged to its rows? grown is the total, most
 * the largest.
 */
static bool would_break(const struct evaluation *e, const struct rule *rule, double grown,
			double most)
{
	enum metric metric = moved_metric(rule);
	double base = 0.0, new = grown;

	/* The cost per item of a sum is unknown. */
	if (rule->metric == METRIC_EACH)
		return true;
	for (size_t i = 0; i < e->count; i++) {
		const struct effect *effect = &e->rows[i]->effects[metric];

		base += effect->base > 0.0 ? effect->base : 0.0;
		new += effect->new > 0.0 ? effect->new : 0.0;
	}
	if (rule->kind == RULE_BUDGET)
		return (rule->is_each ? most : new) >= rule->limit;
	return (rule->is_relative ? (new - base) / base : new - base) > rule->limit;
}

/*
 * Finds rows that were probably renamed. Suppose rows of the rule vanished in NEW, and other rows
 * of the level grew by at least half of that. Then the rule might pass only because of new names.
 * Returns the row that grew most, or NULL. If some rows of the rule remain, only growth that would
 * break the rule counts. Sets *lost_out to the vanished amount, or to the vanished count for rules
 * about counts.
 */
static const struct comparison_row *find_renamed(const struct evaluation *e,
						 const struct rule *rule, double *lost_out)
{
	enum metric metric = moved_metric(rule);
	const struct comparison_row *largest = NULL;
	double lost = 0.0, grown = 0.0;

	if (!has_names(rule))
		return NULL;
	for (size_t i = 0; i < e->count; i++) {
		const struct comparison_row *row = e->rows[i];

		/* A row that only some runs of BASE have can be missing in NEW by chance. */
		if (!row->shown[SIDE_NEW] && row->effects[METRIC_COUNT].is_exact)
			lost += row->effects[metric].base;
	}
	for (size_t i = e->c->first_rows[rule->level]; i < e->c->first_rows[rule->level + 1]; i++) {
		const struct comparison_row *row = &e->c->rows[i];
		double more = growth(row, metric);

		if (!(more > 0.0) || rule_matches_row(rule, row) || is_ignored(e, row))
			continue;
		grown += more;
		if (!largest || more > growth(largest, metric))
			largest = row;
	}
	*lost_out = lost;
	if (!(lost > 0.0) || grown < lost / 2.0)
		return NULL;
	/* If some rows of the rule remain, only growth that would break the rule counts. */
	if (is_on(e, SIDE_NEW) && !would_break(e, rule, grown, growth(largest, metric)))
		return NULL;
	return largest;
}

/*
 * Does any rule cover the path, or the kernel in which it ends? Exceptions count as rules: someone
 * agreed to them.
 */
static bool is_covered(const struct evaluation *e, const struct comparison_row *path)
{
	const char *last = strrchr(path->key, ';');

	for (size_t r = 0; r < e->rules->count; r++) {
		const struct rule *rule = &e->rules->list[r];

		if (rule_matches_row(rule, path) ||
		    (rule->level == LEVEL_KERNEL &&
		     fits(rule, LEVEL_KERNEL, last ? last + 1 : path->key)))
			return true;
	}
	return false;
}

/*
 * Count the call paths that grew significantly, by a relevant share of the GPU time. Sets
 * *uncovered_out to the number of them that no rule covers, directly or by kernel. Sets
 * *largest_out to the one of these that grew most, or to NULL.
 */
static size_t count_grown(const struct evaluation *e, size_t *uncovered_out,
			  const struct comparison_row **largest_out)
{
	const struct comparison_row *whole = comparison_find(e->c, LEVEL_TOTAL, "gpu-time");
	double least = whole ? GROWN_SHARE * whole->effects[METRIC_VALUE].base : 0.0, most = 0.0;
	size_t count = 0;

	*largest_out = NULL;
	*uncovered_out = 0;
	for (size_t i = e->c->first_rows[LEVEL_PATH]; i < e->c->first_rows[LEVEL_PATH + 1]; i++) {
		const struct comparison_row *row = &e->c->rows[i];
		const struct effect *effect = &row->effects[METRIC_VALUE];

		if (!effect->test.is_significant || !(effect->change > least))
			continue;
		count++;
		if (is_covered(e, row))
			continue;
		(*uncovered_out)++;
		if (effect->change > most)
			*largest_out = row;
		most = fmax(most, effect->change);
	}
	return count;
}

/* Does the rule match no row on either side? */
static bool matches_nothing(const struct evaluation *e, const struct rule *rule)
{
	for (size_t i = 0; i < e->c->row_count; i++)
		if (rule_matches_row(rule, &e->c->rows[i]))
			return false;
	return true;
}

/* Maximum share of inconclusive rows in a pass. */
#define UNKNOWN_SHARE 0.1
/*
 * One inconclusive row that may exceed the limit prevents a pass if it has this share of the GPU
 * time.
 */
#define SUSPECT_SHARE 0.01
#define VARYING_NOTED 10	 /* rows of a rule */
#define COPY_BEGIN    "[GPU_Mem" /* of keys of copies and memsets */

/* A copy of a text that lives as long as the verdict. */
static const char *own(struct evaluation *e, const char *text)
{
	return arena_copy_text(e->verdict->memory, text, strlen(text));
}

static const char *name_row(const struct rule *rule, const struct comparison_row *row)
{
	if (row && rule->is_each)
		return text_print("%s(%s)", level_specs[row->level].word, row_name(row, SIZE_MAX));
	return rule->pattern ? text_print("%s(%s)", level_specs[rule->level].word, rule->pattern)
			     : rule->name;
}

/*
 * Finds an allowance that covers the change of a row, or NULL. Sets *why_not if an allowance fits
 * but does not apply.
 */
static const struct rule *find_row_allowance(const struct evaluation *e, const struct rule *rule,
					     const struct comparison_row *row,
					     const struct effect *effect, const char **why_not)
{
	for (size_t r = 0; r < e->rules->count; r++) {
		const struct rule *allowed = &e->rules->list[r];

		/* An allowance for time does not allow a higher count. */
		if (allowed->kind != RULE_ALLOW || allowed->metric != rule->metric ||
		    !rule_matches_row(allowed, row))
			continue;
		if (rule_convert_ratio(allowed, effect, effect->ratio) > allowed->limit) {
			if (allowed->is_relative && !(effect->base > 0.0))
				*why_not = "an allowance in % cannot cover a new row";
			continue;
		}
		if (!allowed->until || time(NULL) <= allowed->until)
			return allowed;
		*why_not = "its allowance has expired";
	}
	return NULL;
}

/* The same for a rule about a sum: every row needs an allowance. */
static const struct rule *find_allowance(const struct evaluation *e, const struct rule *rule,
					 const struct comparison_row *row,
					 const struct effect *effect, const char **why_not)
{
	const struct rule *allowed = NULL;

	*why_not = NULL;
	if (rule->kind == RULE_BUDGET)
		return NULL;
	if (row)
		return find_row_allowance(e, rule, row, effect, why_not);
	for (size_t i = 0; i < e->count; i++) {
		allowed = find_row_allowance(e, rule, e->rows[i], effect, why_not);
		if (!allowed)
			return NULL;
	}
	return allowed;
}

static void add_finding(struct evaluation *e, const struct rule *rule,
			const struct comparison_row *row, const struct effect *effect,
			enum outcome outcome)
{
	struct verdict *v = e->verdict;
	struct rule_finding *finding = xt_new(v->findings, v->finding_count, v->finding_capacity);
	const char *why_not = NULL, *why;

	*finding = (struct rule_finding){
		.row = row,
		.metric = rule->metric,
		.outcome = outcome,
		.effect = *effect,
		.what = own(e, name_row(rule, row)),
	};
	if (outcome == OUTCOME_FAIL)
		finding->allowed_by = find_allowance(e, rule, row, effect, &why_not);
	if (finding->allowed_by)
		finding->outcome = OUTCOME_PASS;
	why = rule_describe(e->c, rule, effect, row_unit(e->rows[0], rule->metric), outcome);
	if (why_not && !finding->allowed_by)
		why = text_print("%s; %s", why, why_not);
	finding->why = own(e, why);
}

/* Outcomes of a rule about single rows. */
struct row_tally {
	size_t selected, left_out, failed, unknown, decisive, gone, varying;
	double share, unknown_share; /* of all rows; of inconclusive rows */
	double detectable_share,
		detectable_sum; /* sum of shares, and of shares times detectable changes */
};

/* Rows too small for the family are tested only if the rule names them, or is a budget. */
static bool is_selected(const struct rule *rule, const struct comparison_row *row)
{
	return row->is_tested || rule->is_counting || rule->kind == RULE_BUDGET || !rule->pattern ||
	       strcmp(rule->pattern, "*") != 0;
}

static size_t count_small(const struct evaluation *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->count; i++)
		count += !e->rows[i]->is_tested;
	return count;
}

/* Small rows that a rule names form their own family (Bonferroni). */
static struct effect effect_of(const struct evaluation *e, const struct rule *rule,
			       const struct comparison_row *row, size_t small_count)
{
	struct effect effect = row->effects[rule->metric];

	if (row->is_tested)
		return effect;
	effect.test.p_adjusted = fmin(1.0, effect.test.p * (double)small_count);
	effect.test.is_significant = effect.test.p_adjusted <= e->c->alpha / 2.0;
	return effect;
}

/* An expensive row that seems to exceed the limit prevents a pass if it is inconclusive. */
static bool is_suspect(const struct rule *rule, const struct comparison_row *row,
		       const struct effect *effect)
{
	return rule->kind == RULE_LIMIT && row->share >= SUSPECT_SHARE &&
	       rule_convert_ratio(rule, effect, effect->net.ratio) > rule_effective_limit(rule);
}

static void evaluate_row(struct evaluation *e, const struct rule *rule,
			 const struct comparison_row *row, const struct effect *effect,
			 struct row_tally *tally)
{
	bool is_decisive;
	enum outcome outcome = rule_evaluate(e->c, rule, effect, &is_decisive);

	tally->selected++;
	tally->gone += !(effect->new > 0.0);
	tally->varying += rule->is_counting && rule_varies_in_base(effect);
	if (outcome == OUTCOME_UNKNOWN) {
		tally->unknown_share += row->share;
		tally->unknown++;
		tally->decisive += is_decisive || is_suspect(rule, row, effect);
	}
	if (!isnan(effect->net.detectable) && !isinf(effect->net.detectable)) {
		tally->detectable_sum += row->share * effect->net.detectable;
		tally->detectable_share += row->share;
	}
	if (outcome == OUTCOME_PASS)
		return;
	add_finding(e, rule, row, effect, outcome);
	tally->failed +=
		e->verdict->findings[e->verdict->finding_count - 1].outcome == OUTCOME_FAIL;
}

static enum outcome outcome_of(const struct row_tally *tally)
{
	if (tally->failed)
		return OUTCOME_FAIL;
	if (tally->varying)
		return tally->unknown ? OUTCOME_UNKNOWN : OUTCOME_PASS;
	/* It is no pass if nothing was tested, or nothing was conclusive. */
	return tally->unknown == tally->selected || tally->decisive ||
			       tally->unknown_share > UNKNOWN_SHARE * tally->share
		       ? OUTCOME_UNKNOWN
		       : OUTCOME_PASS;
}

static const char *describe_tally(const struct row_tally *tally, const struct rule *rule,
				  const struct rule_result *result)
{
	/*
	 * Most counts do not vary, so a mean of their detectable changes says nothing. Budgets test
	 * no change.
	 */
	bool has_detectable = rule->metric != METRIC_COUNT && rule->kind == RULE_LIMIT &&
			      !isnan(result->detectable);

	if (tally->selected)
		return text_print("%zu of %zu worse, %zu inconclusive%s%s%s%s%s", tally->failed,
				  tally->selected, tally->unknown,
				  tally->left_out
					  ? text_print(", %zu too small to test", tally->left_out)
					  : "",
				  tally->gone == tally->selected ? ", all gone" : "",
				  has_detectable ? "; smallest detectable change: " : "",
				  has_detectable ? format_percent(result->detectable) : "",
				  has_detectable ? " on average" : "");
	return text_print("all %zu rows are too small to test; a rule that names them tests them",
			  tally->left_out);
}

/* Names a count that is not judged, because it differs between the runs of BASE. */
static void note_varying(struct evaluation *e, const struct rule *rule,
			 const struct comparison_row *row, const struct effect *effect)
{
	enum unit unit = row_unit(row, rule->metric);

	problems_add(&e->verdict->notes, "not judged, because it varies in BASE: %s, %s to %s",
		     name_row(rule, row), format_amount(unit, effect->base_min),
		     format_amount(unit, effect->base_max));
}

/*
 * Libraries choose between kernels by their speed: kernels that are gone make room for new ones.
 * Other kernels that are launched more often, and copies, are no replacement.
 */
static bool is_replaced(const struct evaluation *e, const struct rule *rule)
{
	double gone = 0.0, new = 0.0;

	for (size_t i = 0; i < e->count && rule->level == LEVEL_KERNEL; i++) {
		const struct comparison_row *row = e->rows[i];
		const struct effect *effect = &row->effects[METRIC_COUNT];
		bool is_copy = !strncmp(row->key, COPY_BEGIN, strlen(COPY_BEGIN));

		if (rule_varies_in_base(effect))
			continue;
		if (!is_copy && !(effect->new_runs.max > 0.0))
			gone += effect->base;
		if (!(effect->new_runs.min > effect->base_max))
			continue;
		if (is_copy || effect->base_max > 0.0)
			return false;
		new += effect->new;
	}
	return rule->level == LEVEL_KERNEL && new <= gone;
}

/* Evaluates each row. The share of inconclusive rows decides between pass and unknown. */
static void evaluate_each(struct evaluation *e, const struct rule *rule, struct rule_result *result)
{
	size_t small_count = count_small(e);
	struct row_tally tally = {0};

	for (size_t i = 0; i < e->count; i++) {
		const struct comparison_row *row = e->rows[i];
		struct effect effect = effect_of(e, rule, row, small_count);

		tally.share += row->share;
		if (is_selected(rule, row))
			evaluate_row(e, rule, row, &effect, &tally);
		else
			tally.left_out++;
		if (rule->is_counting && rule_varies_in_base(&effect) &&
		    tally.varying <= VARYING_NOTED)
			note_varying(e, rule, row, &effect);
	}
	result->outcome = outcome_of(&tally);
	result->detectable =
		tally.detectable_share > 0.0 ? tally.detectable_sum / tally.detectable_share : NAN;
	if (!rule->is_counting) {
		result->text = own(e, describe_tally(&tally, rule, result));
		return;
	}
	e->judged_count += tally.selected - tally.varying;
	if (tally.failed && is_replaced(e, rule)) {
		e->verdict->finding_count = result->first_finding;
		problems_add(&e->verdict->notes,
			     "%zu kernels are launched more often and others less often, but no "
			     "more in all: not judged",
			     tally.failed);
		tally.failed = 0;
		result->outcome = OUTCOME_PASS;
	}
	result->text =
		own(e, text_print("%zu of %zu more in all runs of NEW; %zu vary in BASE and are "
				  "not judged",
				  tally.failed, tally.selected, tally.varying));
}

/*
 * After a significant common change, the uncertainty of a path's slope against it can dominate the
 * net change. Test the raw values too, and use the test with the smaller detectable change.
 * Choosing by precision, not by result, does not bias the test.
 */
static void use_raw_if_surer(const struct evaluation *e, const struct rule *rule,
			     struct effect *effect)
{
	struct effect raw;

	if (!e->c->common.effect.test.is_significant || !level_specs[rule->level].is_gpu_time ||
	    rule->metric == METRIC_COUNT || effect->is_exact || effect->is_boundary_shift)
		return;
	comparison_sum(e->c, rule->metric, e->rows, e->count, true, &raw);
	if (raw.net.detectable < rule_detectable(e->c, rule, effect))
		*effect = raw;
}

static void evaluate_sum(struct evaluation *e, const struct rule *rule, struct rule_result *result)
{
	const struct comparison_row *row = e->count == 1 ? e->rows[0] : NULL;
	const struct rule_finding *finding;
	struct effect effect;

	if (row) {
		/* A row that the rule names is a single question: no correction for its level. */
		effect = row->effects[rule->metric];
		effect.test.is_significant = effect.test.p <= e->c->alpha;
	} else {
		comparison_sum(e->c, rule->metric, e->rows, e->count, false, &effect);
	}
	use_raw_if_surer(e, rule, &effect);
	result->outcome = rule_evaluate(e->c, rule, &effect, NULL);
	result->detectable = rule_detectable(e->c, rule, &effect);
	result->text = own(e, rule_describe(e->c, rule, &effect, row_unit(e->rows[0], rule->metric),
					    result->outcome));
	e->judged_count += rule->is_counting && !rule_varies_in_base(&effect);
	if (rule->is_counting && row && rule_varies_in_base(&effect)) {
		result->text = result->outcome == OUTCOME_UNKNOWN
				       ? "varies in BASE, but each run of NEW has far more"
				       : "not judged";
		note_varying(e, rule, row, &effect);
		return;
	}
	if (result->outcome == OUTCOME_PASS)
		return;
	add_finding(e, rule, row, &effect, result->outcome);
	finding = &e->verdict->findings[e->verdict->finding_count - 1];
	result->outcome = finding->outcome;
	/* The text of the finding also says why an allowance does not apply. */
	result->text = finding->why;
}

static int compare_findings(const void *a, const void *b)
{
	static const int order[] = {[OUTCOME_FAIL] = 0, [OUTCOME_UNKNOWN] = 1, [OUTCOME_PASS] = 2};
	const struct rule_finding *x = a, *y = b;
	/* Rows without a change come last. */
	double dx = isnan(x->effect.change) ? -INFINITY : x->effect.change;
	double dy = isnan(y->effect.change) ? -INFINITY : y->effect.change;

	return ORDER(order[x->outcome], order[y->outcome]) ?: ORDER(dy, dx);
}

/* Do not let a rule pass only because its rows were renamed. */
static void check_renamed(struct evaluation *e, const struct rule *rule, struct rule_result *result)
{
	double lost;
	const struct comparison_row *successor = find_renamed(e, rule, &lost);
	enum unit unit;

	if (!successor || result->outcome != OUTCOME_PASS)
		return;
	unit = rule->metric == METRIC_COUNT ? UNIT_COUNT : level_specs[successor->level].unit;
	result->outcome = OUTCOME_UNKNOWN;
	result->text = own(
		e, text_print("%s gone, but other rows grew as much, most of all %s(%s): was it "
			      "renamed?",
			      format_amount(unit, lost), level_specs[successor->level].word,
			      row_name(successor, SIZE_MAX)));
}

static void evaluate_rule(struct evaluation *e, const struct rule *rule)
{
	struct verdict *v = e->verdict;
	struct rule_result *result = &v->results[v->result_count++];
	const char *missing;

	*result = (struct rule_result){
		.rule = rule, .first_finding = v->finding_count, .detectable = NAN};
	find_rows(e, rule);
	if (!e->count) {
		result->outcome = rule->is_soft ? OUTCOME_PASS : OUTCOME_UNKNOWN;
		result->text = e->has_ignored ? "all matching rows are ignored"
					      : "matches nothing on either side";
		if (!rule->is_soft)
			problems_add(&v->problems, "%s: '%s': %s", rule->origin, rule->text,
				     result->text);
		return;
	}
	missing = missing_side(e, rule);
	if (missing) {
		problems_add(&v->problems, "%s: '%s' matches nothing in %s", rule->origin,
			     rule->text, missing);
		result->outcome = OUTCOME_UNKNOWN;
		result->text = own(e, text_print("matches nothing in %s", missing));
		return;
	}
	if (rule->is_each)
		evaluate_each(e, rule, result);
	else
		evaluate_sum(e, rule, result);
	check_renamed(e, rule, result);
	result->finding_count = v->finding_count - result->first_finding;
	SORT(v->findings + result->first_finding, result->finding_count, compare_findings);
}

/* Note slower paths that no rule covers. */
static void note_uncovered(struct evaluation *e)
{
	struct verdict *v = e->verdict;
	const struct comparison_row *largest;

	v->grown_count = count_grown(e, &v->uncovered_count, &largest);
	if (!v->uncovered_count)
		return;
	problems_add(&v->notes,
		     "%zu call path%s more GPU time, but no rule covers %s; the largest increase "
		     "is %s in path(%s)",
		     v->uncovered_count, v->uncovered_count > 1 ? "s use" : " uses",
		     v->uncovered_count > 1 ? "them" : "it",
		     format_amount(largest->unit, largest->effects[METRIC_VALUE].change),
		     row_name(largest, SIZE_MAX));
}

static enum outcome overall(const struct verdict *v)
{
	bool is_unknown = false;

	if (v->problems.count)
		return OUTCOME_UNKNOWN;
	for (size_t r = 0; r < v->result_count; r++) {
		if (v->results[r].outcome == OUTCOME_FAIL)
			return OUTCOME_FAIL;
		is_unknown |= v->results[r].outcome == OUTCOME_UNKNOWN;
	}
	return is_unknown ? OUTCOME_UNKNOWN : OUTCOME_PASS;
}

/* Adds a problem if --only-counts could not learn enough. Returns whether its rules are given. */
static bool check_counting(const struct evaluation *e)
{
	const struct comparison *c = e->c;
	bool has_counting = false, has_few = c->side_counts[SIDE_BASE] < COUNTING_RUNS_MIN ||
					     c->side_counts[SIDE_NEW] < COUNTING_RUNS_MIN;

	for (size_t r = 0; r < e->rules->count; r++)
		has_counting |= e->rules->list[r].is_counting;
	if (!has_counting)
		return false;
	for (size_t r = 0; r < e->verdict->result_count && has_few; r++)
		if (e->verdict->results[r].rule->is_counting)
			e->verdict->results[r].outcome = OUTCOME_UNKNOWN;
	if (has_few)
		problems_add(
			&e->verdict->problems,
			"--only-counts needs %d runs of each side to learn which counts never vary",
			COUNTING_RUNS_MIN);
	else if (!e->judged_count)
		problems_add(&e->verdict->problems,
			     "--only-counts found no count that is equal in all runs of BASE");
	return true;
}

void verdict_make(struct verdict *v, const struct comparison *c, const struct rules *rules,
		  struct problems *problems)
{
	struct evaluation e = {.c = c, .rules = rules, .verdict = v};

	*v = (struct verdict){.problems = *problems, .memory = arena_new()};
	*problems = (struct problems){0};
	if (c) {
		e.rows = xt_calloc(c->row_count + 1, sizeof(*e.rows));
		v->results = xt_calloc(rules->count + 1, sizeof(*v->results));
	}
	for (size_t n = 0; c && n < c->notes.count; n++)
		problems_add(&v->notes, "%s", c->notes.lines[n]);
	for (size_t r = 0; c && r < rules->count; r++) {
		const struct rule *rule = &rules->list[r];

		if (rule->kind == RULE_LIMIT || rule->kind == RULE_BUDGET)
			evaluate_rule(&e, rule);
		else if (matches_nothing(&e, rule))
			problems_add(&v->notes, "%s: '%s' matches nothing on either side",
				     rule->origin, rule->text);
	}
	if (c && v->result_count && !check_counting(&e))
		note_uncovered(&e);
	if (c && !v->result_count)
		problems_add(&v->problems, "there is no rule with a limit or a budget");
	free(e.rows);
	v->outcome = overall(v);
}

void verdict_free(struct verdict *v)
{
	free_all(v->results, v->findings);
	arena_free(v->memory);
	problems_free(&v->problems);
	problems_free(&v->notes);
	*v = (struct verdict){0};
}
