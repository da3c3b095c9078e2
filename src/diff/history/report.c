/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace history as text, JSON and CSV, and words that all outputs use.
 * docs/HISTORY.md lists the members of the JSON document.
 */
#include "diff/history/report.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/history/detect.h"
#include "diff/output/json_parts.h"

#define WHY_BYTES 512

const char *movement_word(const struct group_result *r, const struct movement *movement)
{
	static const char *const words[][2] = {
		[UNIT_NS] = {"faster", "slower"},
		[UNIT_BYTES] = {"less", "more"},
		[UNIT_COUNT] = {"fewer", "more"},
	};
	const struct finding *lead = &r->detection.findings[movement->lead];
	bool is_more = lead->after > lead->before;

	if (movement->is_worse && !is_more)
		return "mixed";
	return words[finding_unit(r, lead)][is_more];
}

const char *finding_interval(char out[FINDING_INTERVAL_BYTES], const struct finding *finding)
{
	char low[AMOUNT_BYTES], high[AMOUNT_BYTES];

	if (!isfinite(finding->ratio) || !isfinite(finding->low))
		snprintf(out, FINDING_INTERVAL_BYTES, "exact");
	else
		snprintf(out, FINDING_INTERVAL_BYTES, "interval %s to %s",
			 format_ratio(low, finding->low), format_ratio(high, finding->high));
	return out;
}

const char *movement_cause_text(const struct movement *movement)
{
	return movement->reason ? "accepted" : cause_texts[movement->cause];
}

const char *group_basis(char out[LABEL_BYTES], const struct group_result *r)
{
	const struct history_point *last = group_point(r->history, r->group, r->group->count - 1);
	const char *iterations = last->properties[PROPERTY_ITERATIONS];

	if (last->id[0] != 'i')
		snprintf(out, LABEL_BYTES, "values of whole runs");
	else if (!strncmp(iterations, "nvtx", 4))
		snprintf(out, LABEL_BYTES, "per iteration (NVTX range%.50s)", iterations + 4);
	else
		snprintf(out, LABEL_BYTES, "%s",
			 strncmp(iterations, "period", 6) ? "values of whole runs"
							  : "per iteration (detected)");
	return out;
}

const char *row_title(char out[ROW_TITLE_BYTES], const struct history_row *row, enum metric metric)
{
	snprintf(out, ROW_TITLE_BYTES, "%s%s%s%s", metric == METRIC_COUNT ? "number of " : "",
		 row->level == LEVEL_TOTAL ? "" : level_specs[row->level].word,
		 row->level == LEVEL_TOTAL ? "" : " ", row->name);
	return out;
}

static void put_finding(FILE *out, const struct group_result *r, const struct finding *finding)
{
	char title[ROW_TITLE_BYTES], before[AMOUNT_BYTES], after[AMOUNT_BYTES];
	char ratio[AMOUNT_BYTES], interval[FINDING_INTERVAL_BYTES];
	enum unit unit = finding_unit(r, finding);

	fprintf(out, "    %s\n        %s -> %s, %s (%s)%s%s\n",
		row_title(title, finding_row(r, finding), finding_track(r, finding)->metric),
		format_amount(before, unit, finding->before),
		format_amount(after, unit, finding->after), format_ratio(ratio, finding->ratio),
		finding_interval(interval, finding), finding->reason ? "; accepted: " : "",
		finding->reason ? finding->reason : "");
}

/* "between abc and def": the commits that can be the cause. */
static void put_range(FILE *out, const struct group_result *r, const struct movement *movement)
{
	char labels[3][LABEL_BYTES];
	size_t before = movement->first ? movement->first - 1 : 0;

	point_label(labels[0], group_point(r->history, r->group, before));
	point_label(labels[1], group_point(r->history, r->group, movement->place));
	point_label(labels[2], group_point(r->history, r->group, movement->last));
	if (movement->first == movement->last)
		fprintf(out, "%s (after %s)", labels[1], labels[0]);
	else
		fprintf(out, "%s (range %s..%s)", labels[1], labels[0], labels[2]);
}

static void put_movement(FILE *out, const struct history_report *report,
			 const struct group_result *r, size_t index)
{
	const struct movement *movement = &r->movements[index];
	const struct finding **list = xt_calloc(r->detection.finding_count + 1, sizeof(*list));
	const struct finding *lead = &r->detection.findings[movement->lead];
	char why[WHY_BYTES], label[LABEL_BYTES], percent[AMOUNT_BYTES];
	size_t count;

	count = movement_findings(r, index, list);
	fputs("\n  ", out);
	if (movement->is_drift)
		fprintf(out, "slow drift since %s: %s per run",
			point_label(label, group_point(r->history, r->group, movement->first)),
			format_ratio(percent, lead->per_run));
	else
		put_range(out, r, movement);
	fprintf(out, ": %s, %s", movement_word(r, movement), movement_cause_text(movement));
	movement_why(why, sizeof(why), r, movement);
	if (movement->reason)
		fprintf(out, ": %s", movement->reason);
	else if (*why)
		fprintf(out, ": %s", why);
	fputc('\n', out);
	for (size_t f = 0; f < count && f < report->top_count; f++)
		put_finding(out, r, list[f]);
	if (count > report->top_count)
		fprintf(out, "    and %zu more\n", count - report->top_count);
	free(list);
}

static void put_noise(FILE *out, const struct group_result *r)
{
	static const char *const totals[] = {"gpu-time", "wall"};
	char amount[AMOUNT_BYTES], noise[AMOUNT_BYTES];

	for (size_t t = 0; t < 2; t++) {
		const struct track *track = detection_find(&r->detection, r->history, LEVEL_TOTAL,
							   totals[t], METRIC_VALUE);
		double last, deviation;
		size_t count;

		if (!track)
			continue;
		deviation = track_noise(track, r->group, NOISE_SPAN, &count);
		last = track->values[track->count - 1];
		fprintf(out, "  %s %s in the newest set", totals[t],
			format_amount(amount, r->history->rows[track->row].unit,
				      track->is_log ? exp(last) : last));
		if (isfinite(deviation))
			fprintf(out, ", noise %s over the newest %zu sets",
				format_percent(noise, deviation), count);
		fputc('\n', out);
	}
}

/* Breaks at which nothing moved. */
static void put_quiet_breaks(FILE *out, const struct group_result *r)
{
	for (size_t b = 0; b < r->group->break_count; b++) {
		const struct group_break *change = &r->group->breaks[b];
		struct movement quiet = {.change = change};
		char why[WHY_BYTES], label[LABEL_BYTES];
		bool has_moved = false;

		for (size_t m = 0; m < r->movement_count; m++)
			has_moved |= r->movements[m].change == change;
		if (!has_moved)
			fprintf(out, "  %s: %s; no significant movement\n",
				point_label(label,
					    group_point(r->history, r->group, change->place)),
				movement_why(why, sizeof(why), r, &quiet));
	}
}

static void put_group(FILE *out, const struct history_report *report, const struct group_result *r)
{
	char labels[2][LABEL_BYTES], basis[LABEL_BYTES];
	size_t last = r->group->count - 1;

	fprintf(out, "%s: %zu set%s of runs, %s to %s, %s\n", r->group->name, r->group->count,
		last ? "s" : "", point_label(labels[0], group_point(r->history, r->group, 0)),
		point_label(labels[1], group_point(r->history, r->group, last)),
		group_basis(basis, r));
	put_noise(out, r);
	if (r->group->count < 2 * SEGMENT_MIN)
		fprintf(out, "  too few for change points: at least %d sets are needed\n",
			2 * SEGMENT_MIN);
	else if (!r->movement_count)
		fprintf(out, "  no movement found\n");
	put_quiet_breaks(out, r);
	for (size_t m = 0; m < r->movement_count; m++)
		put_movement(out, report, r, m);
}

static int write_text(FILE *out, const void *context)
{
	const struct history_report *report = context;
	for (size_t g = 0; g < report->result_count; g++) {
		if (g)
			fputc('\n', out);
		put_group(out, report, &report->results[g]);
	}
	for (size_t n = 0; n < report->history->notes.count; n++)
		fprintf(out, "%snote: %s\n", n ? "" : "\n", report->history->notes.lines[n]);
	return 0;
}

const struct output_writer report_text = {
	.name = "text",
	.help = "Write movements and notes for people",
	.write_file = write_text,
};

#define HISTORY_VERSION 1

static void json_put_label(cJSON *object, const char *name, const struct group_result *r,
			   size_t place)
{
	char label[LABEL_BYTES];

	cJSON_AddStringToObject(object, name,
				point_label(label, group_point(r->history, r->group, place)));
}

static void json_put_points(cJSON *object, const struct group_result *r)
{
	cJSON *list = cJSON_AddArrayToObject(object, "points");

	for (size_t i = 0; i < r->group->count; i++) {
		const struct history_point *point = group_point(r->history, r->group, i);
		cJSON *item = json_add_object(list);

		json_put_label(item, "label", r, i);
		if (point->commit)
			cJSON_AddStringToObject(item, "commit", point->commit);
		cJSON_AddStringToObject(item, "origin", point->origin);
		cJSON_AddNumberToObject(item, "time_s", (double)point->time_ns / 1e9);
		cJSON_AddNumberToObject(item, "runs", point->run_count);
	}
}

static void json_put_finding(cJSON *list, const struct group_result *r,
			     const struct finding *finding)
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

static void json_put_movements(cJSON *object, const struct group_result *r)
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
		json_put_label(item, "at", r, movement->place);
		json_put_label(item, "after", r, movement->first ? movement->first - 1 : 0);
		json_put_label(item, "until", r, movement->last);
		rows = cJSON_AddArrayToObject(item, "rows");
		for (size_t f = 0; f < count; f++)
			json_put_finding(rows, r, list[f]);
	}
	free(list);
}

/* The noise of each total, in successive stretches of runs, oldest first. */
static void json_put_noise(cJSON *object, const struct group_result *r)
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

static void json_put_group(cJSON *groups, const struct group_result *r)
{
	const struct history_point *last = group_point(r->history, r->group, r->group->count - 1);
	cJSON *object = json_add_object(groups);
	char basis[LABEL_BYTES];

	cJSON_AddStringToObject(object, "name", r->group->name);
	cJSON_AddStringToObject(object, "program", last->properties[PROPERTY_PROGRAM]);
	cJSON_AddStringToObject(object, "gpu", last->properties[PROPERTY_GPU]);
	cJSON_AddStringToObject(object, "basis", group_basis(basis, r));
	json_put_movements(object, r);
	json_put_noise(object, r);
	json_put_points(object, r);
}

static int write_json(FILE *out, const void *context)
{
	const struct history_report *report = context;
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
		json_put_group(groups, &report->results[g]);
	text = cJSON_PrintUnformatted(document);
	cJSON_Delete(document);
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

const struct output_writer report_json = {
	.name = "json",
	.help = "Write movements, noise and runs as one JSON document",
	.write_file = write_json,
};

/* RFC 4180. A leading sign would make a spreadsheet run the text as a formula. */
static void csv_put_text(FILE *out, const char *text)
{
	fputc('"', out);
	if (*text && strchr("=+-@", *text))
		fputc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void csv_put_number(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, ",%.9g", value);
	else
		fputc(',', out);
}

/* The mean since the last change and until the next one. */
static void part_means(const struct group_result *r, const struct track *track, double *means)
{
	for (size_t i = 0, end; i < track->count; i = end) {
		double sum = 0.0;
		size_t begin;

		track_part(track, r->group, i, &begin, &end);
		for (size_t k = begin; k < end; k++)
			sum += track->values[k];
		sum /= (double)(end - begin);
		for (size_t k = begin; k < end; k++)
			means[k] = track->is_log ? exp(sum) : sum;
	}
}

static bool has_change(const struct track *track, size_t index)
{
	for (size_t c = 0; c < track->changes.count; c++)
		if (track->changes.list[c] == index)
			return true;
	return false;
}

static void csv_put_track(FILE *out, const struct group_result *r, const struct track *track)
{
	const struct history_row *row = &r->history->rows[track->row];
	double *means = xt_calloc(track->count + 1, sizeof(*means));
	char label[LABEL_BYTES];

	part_means(r, track, means);
	for (size_t i = 0; i < track->count; i++) {
		const struct history_point *point =
			group_point(r->history, r->group, track->places[i]);

		csv_put_text(out, r->group->name);
		fprintf(out, ",%zu,", track->places[i]);
		csv_put_text(out, point_label(label, point));
		fprintf(out, ",%" PRIu64 ",%s,", point->time_ns / 1000000000,
			level_specs[row->level].word);
		csv_put_text(out, row->name);
		fprintf(out, ",%s", json_units[row->unit]);
		csv_put_number(out, track->is_log ? exp(track->values[i]) : track->values[i]);
		csv_put_number(
			out, group_value(r->history, r->group, track->row, track->places[i]).count);
		csv_put_number(out, means[i]);
		fprintf(out, ",%d\n", has_change(track, i));
	}
	free(means);
}

static int write_csv(FILE *out, const void *context)
{
	const struct history_report *report = context;
	fputs("group,run,label,time_s,level,name,unit,value,count,mean,changed\n", out);
	for (size_t g = 0; g < report->result_count; g++) {
		const struct group_result *r = &report->results[g];

		for (size_t t = 0; t < r->detection.track_count; t++)
			if (r->detection.tracks[t].metric == METRIC_VALUE)
				csv_put_track(out, r, &r->detection.tracks[t]);
	}
	return 0;
}

const struct output_writer report_csv = {
	.name = "csv",
	.help = "Write the values of all rows and runs",
	.write_file = write_csv,
};
