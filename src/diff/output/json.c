/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON document. Its schema is docs/diff.schema.json.
 */
#include "diff/output/diff_output.h"

#define DIFF_VERSION 1

static void put_frames(struct json *json, const char *key, const struct profile_entry *entry)
{
	if (entry)
		json_strings(json, key, entry->frames, entry->frame_count);
}

static void put_effect(struct json *json, const char *key, const struct effect *effect)
{
	json_begin_object(json, key);
	json_number(json, "base", effect->base);
	json_number(json, "new", effect->new);
	json_number(json, "change", effect->change);
	json_number(json, "ratio", effect->ratio);
	json_number(json, "judged_ratio", effect->net.ratio);
	json_number(json, "low_ratio", effect->net.low);
	json_number(json, "high_ratio", effect->net.high);
	json_number(json, "p", effect->test.p);
	json_number(json, "p_adjusted", effect->test.p_adjusted);
	json_number(json, "detectable_ratio", effect->net.detectable);
	json_bool(json, "exact", effect->is_exact);
	json_bool(json, "cut", effect->is_boundary_shift);
	json_bool(json, "significant", effect->test.is_significant);
	json_end_object(json);
}

static void put_changes(struct json *json, const struct comparison_row *row)
{
	static const char *const words[] = {"slower",	"faster",   "more_often", "less_often",
					    "appeared", "vanished", "more",	  "less"};

	json_begin_array(json, "changes");
	for (unsigned bit = 0; bit < sizeof(words) / sizeof(words[0]); bit++)
		if (row->change & 1u << bit)
			json_string(json, NULL, words[bit]);
	json_end_array(json);
}

static void json_put_row(struct json *json, const struct comparison *c,
			 const struct comparison_row *row)
{
	json_begin_object(json, NULL);
	json_string(json, "level", level_specs[row->level].word);
	json_string(json, "key", row->key);
	json_string(json, "unit", json_units[row->unit]);
	json_string(json, "basis", comparison_basis(c, row->level, row->key));
	put_frames(json, "base_frames", row->shown[SIDE_BASE]);
	put_frames(json, "new_frames", row->shown[SIDE_NEW]);
	json_bool(json, "moved", row->is_renamed);
	json_bool(json, "tested", row->is_tested);
	json_number(json, "share", row->share);
	put_changes(json, row);
	json_number(json, "change_by_each", row->by_each);
	json_number(json, "change_by_count", row->by_count);
	put_effect(json, "value", &row->effects[METRIC_VALUE]);
	put_effect(json, "count", &row->effects[METRIC_COUNT]);
	put_effect(json, "each", &row->effects[METRIC_EACH]);
	json_end_object(json);
}

static void put_runs(struct json *json, const struct run_set *set, const char *key)
{
	json_begin_array(json, key);
	for (size_t i = 0; i < set->count; i++) {
		const struct run_profile *run = set->runs[i];

		json_begin_object(json, NULL);
		json_string(json, "origin", run->origin);
		json_string(json, "program", run->program);
		json_string(json, "command", run->command);
		json_string(json, "host", run->machine.host);
		json_string(json, "iterations", run->iterations.kind);
		json_number(json, "iteration_count", (double)run->iterations.used_count);
		json_number(json, "warmup_count", (double)run->iterations.warmup_count);
		json_bool(json, "history", run->history > 0);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_findings(struct json *json, const struct verdict *v,
			 const struct rule_result *result)
{
	json_begin_array(json, "findings");
	for (size_t f = 0; f < result->finding_count; f++) {
		const struct rule_finding *finding = &v->findings[result->first_finding + f];

		json_begin_object(json, NULL);
		json_string(json, "what", finding->what);
		json_string(json, "outcome", outcome_words[finding->outcome]);
		json_string(json, "why", finding->why);
		if (finding->row)
			json_string(json, "key", finding->row->key);
		if (finding->allowed_by)
			json_string(json, "allowed_by", finding->allowed_by->text);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_verdict(struct json *json, const struct verdict *v)
{
	json_begin_array(json, "rules");
	for (size_t r = 0; r < v->result_count; r++) {
		const struct rule_result *result = &v->results[r];

		json_begin_object(json, NULL);
		put_findings(json, v, result);
		json_string(json, "rule", result->rule->text);
		json_string(json, "origin", result->rule->origin);
		json_string(json, "outcome", outcome_words[result->outcome]);
		json_string(json, "text", result->text);
		json_number(json, "detectable_ratio", result->detectable);
		json_end_object(json);
	}
	json_end_array(json);
}

int diff_output_json(struct output *out, const void *context)
{
	const struct diff_result *result = context;
	const struct comparison *c = result->comparison;
	struct json json = {.out = out};

	json_begin_document(&json, "xtrace-diff", DIFF_VERSION);
	json_string(&json, "outcome", outcome_words[result->verdict->outcome]);
	json_lines(&json, "problems", &result->verdict->problems);
	put_runs(&json, &result->sets[SIDE_BASE], "base_runs");
	put_runs(&json, &result->sets[SIDE_NEW], "new_runs");
	put_verdict(&json, result->verdict);
	if (c) {
		json_bool(&json, "per_iteration", c->has_iterations);
		json_number(&json, "alpha", c->alpha);
		json_number(&json, "runs_needed", c->runs_needed);
		if (c->common.is_known)
			put_effect(&json, "common", &c->common.effect);
		json_lines(&json, "notes", &result->verdict->notes);
		json_begin_array(&json, "rows");
		for (size_t i = 0; i < c->row_count; i++)
			json_put_row(&json, c, &c->rows[i]);
		json_end_array(&json);
	}
	json_end_object(&json);
	return 0;
}
