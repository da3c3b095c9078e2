/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON document. docs/HISTORY.md lists its members.
 */
#include "diff/history/report.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "diff/output/json_parts.h"

#define HISTORY_VERSION 1

static void put_label(cJSON *object, const char *name, const struct group_result *r, size_t place)
{
	char label[LABEL_BYTES];

	cJSON_AddStringToObject(object, name,
				point_label(label, group_point(r->history, r->group, place)));
}

static void put_points(cJSON *object, const struct group_result *r)
{
	cJSON *list = cJSON_AddArrayToObject(object, "points");

	for (size_t i = 0; i < r->group->count; i++) {
		const struct history_point *point = group_point(r->history, r->group, i);
		cJSON *item = json_add_object(list);

		put_label(item, "label", r, i);
		if (point->commit)
			cJSON_AddStringToObject(item, "commit", point->commit);
		cJSON_AddStringToObject(item, "origin", point->origin);
		cJSON_AddNumberToObject(item, "time_s", (double)point->time_ns / 1e9);
		cJSON_AddNumberToObject(item, "runs", point->run_count);
	}
}

static void put_finding(cJSON *list, const struct group_result *r, const struct finding *finding)
{
	static const char *const metrics[METRICS] = {"value", "count", "each"};
	const struct history_row *row = finding_row(r, finding);
	cJSON *item = json_add_object(list);

	cJSON_AddStringToObject(item, "level", level_specs[row->level].word);
	cJSON_AddStringToObject(item, "key", row->key);
	cJSON_AddStringToObject(item, "name", row->name);
	cJSON_AddStringToObject(item, "metric", metrics[finding_track(r, finding)->metric]);
	cJSON_AddStringToObject(item, "unit", json_units[finding_unit(r, finding)]);
	json_add_number(item, "before", finding->before);
	json_add_number(item, "after", finding->after);
	json_add_number(item, "ratio", finding->ratio);
	json_add_number(item, "low_ratio", finding->low);
	json_add_number(item, "high_ratio", finding->high);
	json_add_number(item, "p_adjusted", finding->p);
	if (finding->is_drift)
		json_add_number(item, "ratio_per_run", finding->per_run);
	if (finding->reason)
		cJSON_AddStringToObject(item, "accepted", finding->reason);
}

static void put_movements(cJSON *object, const struct group_result *r)
{
	const struct finding **list = xt_calloc(r->detection.finding_count + 1, sizeof(*list));
	cJSON *movements = cJSON_AddArrayToObject(object, "movements");
	char why[512];

	for (size_t m = 0; m < r->movement_count; m++) {
		const struct movement *movement = &r->movements[m];
		cJSON *item = json_add_object(movements), *rows;
		size_t count = movement_findings(r, m, list);

		cJSON_AddStringToObject(item, "kind", movement->is_drift ? "drift" : "step");
		cJSON_AddStringToObject(item, "cause",
					movement->reason ? "accepted"
							 : cause_words[movement->cause]);
		cJSON_AddStringToObject(item, "why",
					movement->reason
						? movement->reason
						: movement_why(why, sizeof(why), r, movement));
		cJSON_AddBoolToObject(item, "worse", movement->is_worse);
		cJSON_AddNumberToObject(item, "place", (double)movement->place);
		put_label(item, "at", r, movement->place);
		put_label(item, "after", r, movement->first ? movement->first - 1 : 0);
		put_label(item, "until", r, movement->last);
		rows = cJSON_AddArrayToObject(item, "rows");
		for (size_t f = 0; f < count; f++)
			put_finding(rows, r, list[f]);
	}
	free(list);
}

/* The noise of each total, in successive stretches of runs, oldest first. */
static void put_noise(cJSON *object, const struct group_result *r)
{
	cJSON *list = cJSON_AddArrayToObject(object, "noise");

	for (size_t t = 0; t < r->detection.track_count; t++) {
		const struct track *track = &r->detection.tracks[t];
		const struct history_row *row = &r->history->rows[track->row];
		cJSON *item, *spans;

		if (row->level != LEVEL_TOTAL || track->metric != METRIC_VALUE)
			continue;
		item = json_add_object(list);
		cJSON_AddStringToObject(item, "total", row->key);
		json_add_number(item, "newest_ratio",
				track_noise(track, r->group, NOISE_SPAN, NULL));
		spans = cJSON_AddArrayToObject(item, "ratios");
		for (size_t begin = 0; begin < track->count; begin += NOISE_SPAN) {
			double noise =
				track_noise_between(track, r->group, begin, begin + NOISE_SPAN);

			cJSON_AddItemToArray(spans, isfinite(noise) ? cJSON_CreateNumber(noise)
								    : cJSON_CreateNull());
		}
	}
}

static void put_group(cJSON *groups, const struct group_result *r)
{
	const struct history_point *last = group_point(r->history, r->group, r->group->count - 1);
	cJSON *object = json_add_object(groups);
	char basis[LABEL_BYTES];

	cJSON_AddStringToObject(object, "name", r->group->name);
	cJSON_AddStringToObject(object, "program", last->properties[PROPERTY_PROGRAM]);
	cJSON_AddStringToObject(object, "gpu", last->properties[PROPERTY_GPU]);
	cJSON_AddStringToObject(object, "basis", group_basis(basis, r));
	put_movements(object, r);
	put_noise(object, r);
	put_points(object, r);
}

static int write_json(FILE *out, const struct history_report *report)
{
	cJSON *document = cJSON_CreateObject(), *groups;
	char *text = NULL;

	cJSON_AddStringToObject(document, "format", "xtrace-history");
	cJSON_AddNumberToObject(document, "version", HISTORY_VERSION);
	cJSON_AddStringToObject(document, "generator", "xtrace " XTRACE_VERSION);
	cJSON_AddBoolToObject(document, "failed", report->has_failed);
	json_add_lines(document, "problems", &report->history->problems);
	json_add_lines(document, "notes", &report->history->notes);
	groups = cJSON_AddArrayToObject(document, "groups");
	for (size_t g = 0; g < report->result_count; g++)
		put_group(groups, &report->results[g]);
	text = cJSON_PrintUnformatted(document);
	cJSON_Delete(document);
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

const struct history_output report_json = {
	.name = "json",
	.help = "Write movements, noise and runs as one JSON document",
	.write = write_json,
};
