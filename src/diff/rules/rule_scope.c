/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows of a comparison a rule applies to.
 */
#include "diff/rules/rule_scope.h"

#include <math.h>
#include <string.h>

#include "diff/rules/rule_match.h"

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

static bool is_ignored(const struct rule_scope *scope, const struct comparison_row *row)
{
	for (size_t r = 0; r < scope->rules->count; r++)
		if (scope->rules->list[r].kind == RULE_IGNORE &&
		    rule_matches_row(&scope->rules->list[r], row))
			return true;
	return false;
}

/* Is the row inside another row of the rule, so that the sum already includes it? */
static bool is_counted(const struct rule_scope *scope, const struct rule *rule,
		       const struct comparison_row *row)
{
	if (!is_nested_level(row->level))
		return false;
	for (size_t i = scope->c->first_rows[row->level]; i < scope->c->first_rows[row->level + 1];
	     i++) {
		const struct comparison_row *other = &scope->c->rows[i];
		size_t length = strlen(other->key);

		if (!strncmp(row->key, other->key, length) && row->key[length] == ';' &&
		    rule_matches_row(rule, other))
			return true;
	}
	return false;
}

void rule_scope_find_rows(struct rule_scope *scope, const struct rule *rule)
{
	scope->count = 0;
	scope->has_ignored = false;
	for (size_t i = scope->c->first_rows[rule->level];
	     i < scope->c->first_rows[rule->level + 1]; i++) {
		const struct comparison_row *row = &scope->c->rows[i];

		if (!rule_matches_row(rule, row))
			continue;
		if (is_ignored(scope, row))
			scope->has_ignored = true;
		else if (rule->is_each || !is_counted(scope, rule, row))
			scope->rows[scope->count++] = i;
	}
}

static bool is_on(const struct rule_scope *scope, enum side side)
{
	for (size_t i = 0; i < scope->count; i++)
		if (scope->c->rows[scope->rows[i]].shown[side])
			return true;
	return false;
}

static bool has_paths(const struct rule_scope *scope, enum side side)
{
	for (size_t i = scope->c->first_rows[LEVEL_PATH]; i < scope->c->first_rows[LEVEL_PATH + 1];
	     i++)
		if (scope->c->rows[i].shown[side])
			return true;
	return false;
}

const char *rule_scope_missing_side(const struct rule_scope *scope, const struct rule *rule)
{
	bool needs_base = rule->level == LEVEL_TOTAL && rule->kind == RULE_LIMIT;
	bool needs_new = rule->level == LEVEL_TOTAL ||
			 (rule->kind == RULE_BUDGET && rule->level != LEVEL_IDLE);

	/* GPU work without any path means that the profile lacks paths. */
	needs_new |= rule->level == LEVEL_PATH && !has_paths(scope, SIDE_NEW);
	if (needs_new && !is_on(scope, SIDE_NEW))
		return "NEW";
	return needs_base && !is_on(scope, SIDE_BASE) ? "BASE" : NULL;
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
	return effect->is_significant ? fmax(effect->change, 0.0) : 0.0;
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
static bool would_break(const struct rule_scope *scope, const struct rule *rule, double grown,
			double most)
{
	enum metric metric = moved_metric(rule);
	double base = 0.0, new = grown;

	/* The cost per item of a sum is unknown. */
	if (rule->metric == METRIC_EACH)
		return true;
	for (size_t i = 0; i < scope->count; i++) {
		const struct effect *effect = &scope->c->rows[scope->rows[i]].effects[metric];

		base += effect->base > 0.0 ? effect->base : 0.0;
		new += effect->new > 0.0 ? effect->new : 0.0;
	}
	if (rule->kind == RULE_BUDGET)
		return (rule->is_each ? most : new) >= rule->limit;
	return (rule->is_relative ? (new - base) / base : new - base) > rule->limit;
}

const struct comparison_row *rule_scope_find_renamed(const struct rule_scope *scope,
						     const struct rule *rule, double *lost_out)
{
	enum metric metric = moved_metric(rule);
	const struct comparison_row *largest = NULL;
	double lost = 0.0, grown = 0.0;

	if (!has_names(rule))
		return NULL;
	for (size_t i = 0; i < scope->count; i++) {
		const struct comparison_row *row = &scope->c->rows[scope->rows[i]];

		/* A row that only some runs of BASE have can be missing in NEW by chance. */
		if (!row->shown[SIDE_NEW] && row->effects[METRIC_COUNT].is_exact)
			lost += row->effects[metric].base;
	}
	for (size_t i = scope->c->first_rows[rule->level];
	     i < scope->c->first_rows[rule->level + 1]; i++) {
		const struct comparison_row *row = &scope->c->rows[i];
		double more = growth(row, metric);

		if (!(more > 0.0) || rule_matches_row(rule, row) || is_ignored(scope, row))
			continue;
		grown += more;
		if (!largest || more > growth(largest, metric))
			largest = row;
	}
	*lost_out = lost;
	if (!(lost > 0.0) || grown < lost / 2.0)
		return NULL;
	/* If some rows of the rule remain, only growth that would break the rule counts. */
	if (is_on(scope, SIDE_NEW) && !would_break(scope, rule, grown, growth(largest, metric)))
		return NULL;
	return largest;
}

/*
 * Does any rule cover the path, or the kernel in which it ends? Exceptions count as rules: someone
 * agreed to them.
 */
static bool is_covered(const struct rule_scope *scope, const struct comparison_row *path)
{
	const char *last = strrchr(path->key, ';');

	for (size_t r = 0; r < scope->rules->count; r++) {
		const struct rule *rule = &scope->rules->list[r];

		if (rule_matches_row(rule, path) ||
		    (rule->level == LEVEL_KERNEL &&
		     fits(rule, LEVEL_KERNEL, last ? last + 1 : path->key)))
			return true;
	}
	return false;
}

size_t rule_scope_count_grown(const struct rule_scope *scope, size_t *uncovered_out,
			      const struct comparison_row **largest_out)
{
	const struct comparison_row *whole = comparison_find(scope->c, LEVEL_TOTAL, "gpu-time");
	double least = whole ? GROWN_SHARE * whole->effects[METRIC_VALUE].base : 0.0, most = 0.0;
	size_t count = 0;

	*largest_out = NULL;
	*uncovered_out = 0;
	for (size_t i = scope->c->first_rows[LEVEL_PATH]; i < scope->c->first_rows[LEVEL_PATH + 1];
	     i++) {
		const struct comparison_row *row = &scope->c->rows[i];
		const struct effect *effect = &row->effects[METRIC_VALUE];

		if (!effect->is_significant || !(effect->change > least))
			continue;
		count++;
		if (is_covered(scope, row))
			continue;
		(*uncovered_out)++;
		if (effect->change > most)
			*largest_out = row;
		most = fmax(most, effect->change);
	}
	return count;
}

bool rule_matches_nothing(const struct rule_scope *scope, const struct rule *rule)
{
	for (size_t i = 0; i < scope->c->row_count; i++)
		if (rule_matches_row(rule, &scope->c->rows[i]))
			return false;
	return true;
}
