/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON document. Its schema is docs/diff.schema.json.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "diff/output/diff_output.h"
#include "diff/output/json_parts.h"

#define DIFF_VERSION 1

static void put_effect(cJSON *parent, const char *name, const struct effect *effect)
{
	cJSON *object = cJSON_AddObjectToObject(parent, name);

	json_add_number(object, "base", effect->base);
	json_add_number(object, "new", effect->new);
	json_add_number(object, "change", effect->change);
	json_add_number(object, "ratio", effect->ratio);
	json_add_number(object, "judged_ratio", effect->net_ratio);
	json_add_number(object, "low_ratio", effect->low);
	json_add_number(object, "high_ratio", effect->high);
	json_add_number(object, "p", effect->p);
	json_add_number(object, "p_adjusted", effect->p_adjusted);
	json_add_number(object, "detectable_ratio", effect->detectable);
	cJSON_AddBoolToObject(object, "exact", effect->is_exact);
	cJSON_AddBoolToObject(object, "cut", effect->is_boundary_shift);
	cJSON_AddBoolToObject(object, "significant", effect->is_significant);
}

static void put_changes(cJSON *object, const struct comparison_row *row)
{
	static const char *const words[] = {"slower",	"faster",   "more_often", "less_often",
					    "appeared", "vanished", "more",	  "less"};
	cJSON *list = cJSON_AddArrayToObject(object, "changes");

	for (unsigned bit = 0; bit < sizeof(words) / sizeof(words[0]); bit++)
		if (row->change & 1u << bit)
			cJSON_AddItemToArray(list, cJSON_CreateString(words[bit]));
}

static cJSON *make_row(const struct comparison *c, const struct comparison_row *row)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "level", level_specs[row->level].word);
	cJSON_AddStringToObject(object, "key", row->key);
	cJSON_AddStringToObject(object, "unit", json_units[row->unit]);
	cJSON_AddStringToObject(object, "basis", comparison_basis(c, row->level, row->key));
	if (row->shown[SIDE_BASE])
		json_add_frames(object, "base_frames", row->shown[SIDE_BASE]);
	if (row->shown[SIDE_NEW])
		json_add_frames(object, "new_frames", row->shown[SIDE_NEW]);
	cJSON_AddBoolToObject(object, "moved", row->is_renamed);
	cJSON_AddBoolToObject(object, "tested", row->is_tested);
	json_add_number(object, "share", row->share);
	put_changes(object, row);
	json_add_number(object, "change_by_each", row->by_each);
	json_add_number(object, "change_by_count", row->by_count);
	put_effect(object, "value", &row->effects[METRIC_VALUE]);
	put_effect(object, "count", &row->effects[METRIC_COUNT]);
	put_effect(object, "each", &row->effects[METRIC_EACH]);
	return object;
}

static void put_runs(cJSON *document, const struct diff_result *result)
{
	static const char *const names[] = {"base_runs", "new_runs"};

	for (int s = 0; s < SIDES; s++) {
		cJSON *list = cJSON_AddArrayToObject(document, names[s]);

		for (size_t i = 0; i < result->sets[s].count; i++) {
			const struct run_profile *run = result->sets[s].runs[i];
			cJSON *object = json_add_object(list);

			cJSON_AddStringToObject(object, "origin", run->origin);
			cJSON_AddStringToObject(object, "program", run->program);
			cJSON_AddStringToObject(object, "command", run->command);
			cJSON_AddStringToObject(object, "host", run->host);
			cJSON_AddStringToObject(object, "iterations", run->iterations);
			cJSON_AddNumberToObject(object, "iteration_count", (double)run->used_count);
			cJSON_AddNumberToObject(object, "warmup_count", (double)run->warmup_count);
			cJSON_AddBoolToObject(object, "history", run->history > 0);
		}
	}
}

static void put_verdict(cJSON *document, const struct diff_result *result)
{
	const struct verdict *v = result->verdict;
	cJSON *rules = cJSON_AddArrayToObject(document, "rules");

	for (size_t r = 0; r < v->result_count; r++) {
		const struct rule_result *row = &v->results[r];
		cJSON *object = json_add_object(rules);
		cJSON *findings = cJSON_AddArrayToObject(object, "findings");

		cJSON_AddStringToObject(object, "rule", row->rule->text);
		cJSON_AddStringToObject(object, "origin", row->rule->origin);
		cJSON_AddStringToObject(object, "outcome", outcome_words[row->outcome]);
		cJSON_AddStringToObject(object, "text", row->text);
		json_add_number(object, "detectable_ratio", row->detectable);
		for (size_t f = 0; f < row->finding_count; f++) {
			const struct finding *finding = &v->findings[row->first_finding + f];
			cJSON *item = json_add_object(findings);

			cJSON_AddStringToObject(item, "what", finding->what);
			cJSON_AddStringToObject(item, "outcome", outcome_words[finding->outcome]);
			cJSON_AddStringToObject(item, "why", finding->why);
			if (finding->row)
				cJSON_AddStringToObject(item, "key", finding->row->key);
			if (finding->allowed_by)
				cJSON_AddStringToObject(item, "allowed_by",
							finding->allowed_by->text);
		}
	}
}

static int write_json(FILE *out, const void *context)
{
	const struct diff_result *result = context;
	const struct comparison *c = result->comparison;
	cJSON *document = cJSON_CreateObject(), *rows;
	char *text;

	cJSON_AddStringToObject(document, "format", "xtrace-diff");
	cJSON_AddNumberToObject(document, "version", DIFF_VERSION);
	cJSON_AddStringToObject(document, "generator", "xtrace " XTRACE_VERSION);
	cJSON_AddStringToObject(document, "outcome", outcome_words[result->verdict->outcome]);
	json_add_lines(document, "problems", &result->verdict->problems);
	put_runs(document, result);
	put_verdict(document, result);
	if (c) {
		cJSON_AddBoolToObject(document, "per_iteration", c->has_iterations);
		json_add_number(document, "alpha", c->alpha);
		json_add_number(document, "runs_needed", c->runs_needed);
		if (c->is_common_known)
			put_effect(document, "common", &c->common);
		json_add_lines(document, "notes", &result->verdict->notes);
		rows = cJSON_AddArrayToObject(document, "rows");
		for (size_t i = 0; i < c->row_count; i++)
			cJSON_AddItemToArray(rows, make_row(c, &c->rows[i]));
	}
	text = cJSON_PrintUnformatted(document);
	cJSON_Delete(document);
	fputs(text, out);
	fputc('\n', out);
	free(text);
	return 0;
}

const struct output_writer diff_output_json = {
	.name = "json",
	.help = "Write all rows, effects and the verdict as one JSON document",
	.write_file = write_json,
};
