/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the deciding quantity, and reads it from runs.
 */
#include "diff/rules/deciding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/compare/row_text.h"
#include "diff/compare/run_values.h"
#include "diff/rules/rule_scope.h"

static int copy_text(char **out, const char *text)
{
	*out = text ? strdup(text) : NULL;
	return text && !*out ? -ENOMEM : 0;
}

/* A budget can fail although both sides are equally far above it. */
static bool is_increase(const struct finding *finding)
{
	return finding->outcome == OUTCOME_FAIL && finding->effect.change > 0.0 &&
	       (finding->effect.is_significant || finding->effect.is_exact);
}

static int take(struct deciding *d, const struct rule *rule, const struct finding *finding)
{
	const struct comparison_row *row = finding->row;
	int error = copy_text(&d->what, finding->what);

	d->rule = rule;
	d->is_each = rule->is_each && row;
	d->unit = rule->metric == METRIC_COUNT ? UNIT_COUNT
		  : row			       ? row_unit(row, rule->metric)
		  : rule->level == LEVEL_TOTAL ? total_unit(rule->name)
					       : level_specs[rule->level].unit;
	if (!error)
		error = copy_text(&d->why, finding->why);
	for (int s = 0; s < SIDES && d->is_each && !error; s++)
		error = copy_text(&d->keys[s], row->shown[s] ? row->shown[s]->key : NULL);
	return error;
}

int deciding_choose(struct deciding *d, const struct verdict *v)
{
	*d = (struct deciding){0};
	for (size_t r = 0; r < v->result_count; r++) {
		const struct rule_result *result = &v->results[r];

		for (size_t f = 0; f < result->finding_count; f++) {
			const struct finding *finding = &v->findings[result->first_finding + f];

			if (is_increase(finding))
				return take(d, result->rule, finding);
		}
	}
	return -ENOENT;
}

void deciding_free(struct deciding *d)
{
	for (int s = 0; s < SIDES; s++)
		free(d->keys[s]);
	free(d->what);
	free(d->why);
	*d = (struct deciding){0};
}

static bool has_key(const struct deciding *d, const char *key)
{
	for (int s = 0; s < SIDES; s++)
		if (d->keys[s] && !strcmp(d->keys[s], key))
			return true;
	return false;
}

static bool is_row(const struct deciding *d, const struct comparison_row *row)
{
	for (int s = 0; s < SIDES; s++)
		if (row->shown[s] && has_key(d, row->shown[s]->key))
			return true;
	return has_key(d, row->key);
}

static size_t find_rows(const struct deciding *d, struct rule_scope *scope)
{
	size_t kept = 0;

	rule_scope_find_rows(scope, d->rule);
	if (!d->is_each)
		return scope->count;
	for (size_t i = 0; i < scope->count; i++)
		if (is_row(d, &scope->c->rows[scope->rows[i]]))
			scope->rows[kept++] = scope->rows[i];
	scope->count = kept;
	return kept;
}

int deciding_values(const struct deciding *d, const struct rules *rules, const struct comparison *c,
		    double *values)
{
	struct rule_scope scope = {.c = c, .rules = rules};
	const struct comparison_row **rows = calloc(c->row_count + 1, sizeof(*rows));
	struct run_values taken;
	int error = run_values_init(&taken, c);

	scope.rows = calloc(c->row_count + 1, sizeof(*scope.rows));
	if (!scope.rows || !rows)
		error = -ENOMEM;
	memset(values, 0, c->run_count * sizeof(*values));
	if (!error && find_rows(d, &scope)) {
		for (size_t i = 0; i < scope.count; i++)
			rows[i] = &c->rows[scope.rows[i]];
		/* Both sides are recorded alternately, so keep what all work has in common. */
		taken.keep_common = true;
		run_values_take(&taken, c, d->rule->metric, rows, scope.count);
		memcpy(values, taken.typical, c->run_count * sizeof(*values));
	}
	run_values_free(&taken);
	free(scope.rows);
	free(rows);
	return error;
}

/* Where to look for the cause of a change of a total or a level; the default is the last row. */
static const struct {
	enum level level;
	const char *name; /* NULL: any */
	enum level cause;
	enum metric metric;
} causes[] = {
	{LEVEL_TOTAL, "launches", LEVEL_PATH, METRIC_COUNT},
	{LEVEL_TOTAL, "copies", LEVEL_PATH, METRIC_COUNT},
	{LEVEL_TOTAL, "waits", LEVEL_CALL, METRIC_COUNT},
	{LEVEL_API, NULL, LEVEL_CALL, METRIC_COUNT},
	{LEVELS, NULL, LEVEL_PATH, METRIC_VALUE},
};

const struct comparison_row *deciding_explain(const struct deciding *d, const struct comparison *c,
					      bool *is_sure_out)
{
	const struct comparison_row *best = NULL;
	enum level level;
	enum metric metric;
	size_t i = 0;

	while (causes[i].level != LEVELS &&
	       (causes[i].level != d->rule->level ||
		(causes[i].name && strcmp(causes[i].name, d->rule->name) != 0)))
		i++;
	level = causes[i].cause;
	metric = causes[i].metric;
	if (d->is_each && level_specs[d->rule->level].has_frames) {
		level = d->rule->level;
		metric = d->rule->metric;
	}
	*is_sure_out = false;
	for (size_t r = c->first_rows[level]; r < c->first_rows[level + 1]; r++) {
		const struct comparison_row *row = &c->rows[r];
		const struct effect *effect = &row->effects[metric];
		bool is_sure = effect->is_significant;

		if (!(effect->change > 0.0) ||
		    (level == d->rule->level &&
		     !(d->is_each ? is_row(d, row) : rule_matches_row(d->rule, row))))
			continue;
		if (best &&
		    (is_sure < *is_sure_out ||
		     (is_sure == *is_sure_out && effect->change <= best->effects[metric].change)))
			continue;
		best = row;
		*is_sure_out = is_sure;
	}
	return best;
}
