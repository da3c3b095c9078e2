/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace history as text, JSON and CSV, and words that all outputs use.
 * docs/HISTORY.md lists the members of the JSON document.
 */
#include "diff/history/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/history/detect.h"
#include "diff/output/json.h"
#include "log/base/compare.h"

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

const char *finding_interval(const struct finding *finding)
{
	if (!isfinite(finding->ratio) || !isfinite(finding->low))
		return "exact";
	return text_print("interval %s to %s", format_ratio(finding->low),
			  format_ratio(finding->high));
}

const char *movement_cause_text(const struct movement *movement)
{
	return movement->reason ? "accepted" : cause_specs[movement->cause].text;
}

const char *group_basis(const struct group_result *r)
{
	const struct history_point *last = group_point(r->history, r->group, r->group->count - 1);
	const char *iterations = last->properties[PROPERTY_ITERATIONS];

	if (last->id[0] == 'i' && begins_with(iterations, "nvtx"))
		return text_print("per iteration (NVTX range%.50s)", iterations + 4);
	return last->id[0] == 'i' && begins_with(iterations, "period") ? "per iteration (detected)"
								       : "values of whole runs";
}

const char *row_title(const struct history_row *row, enum metric metric)
{
	bool is_total = row->level == LEVEL_TOTAL;

	return text_print("%s%s%s%s", metric == METRIC_COUNT ? "number of " : "",
			  is_total ? "" : level_specs[row->level].word, is_total ? "" : " ",
			  row->name);
}

static void put_finding(struct output *out, const struct group_result *r,
			const struct finding *finding)
{
	enum unit unit = finding_unit(r, finding);

	output_format(out, "    %s\n        %s -> %s, %s (%s)%s%s\n",
		      row_title(finding_row(r, finding), finding_track(r, finding)->metric),
		      format_amount(unit, finding->before), format_amount(unit, finding->after),
		      format_ratio(finding->ratio), finding_interval(finding),
		      finding->reason ? "; accepted: " : "",
		      finding->reason ? finding->reason : "");
}

/* "between abc and def": the commits that can be the cause. */
static void put_range(struct output *out, const struct group_result *r,
		      const struct movement *movement)
{
	const char *place = result_label(r, movement->place);
	const char *before = result_label(r, movement->first ? movement->first - 1 : 0);

	if (movement->first == movement->last)
		output_format(out, "%s (after %s)", place, before);
	else
		output_format(out, "%s (range %s..%s)", place, before,
			      result_label(r, movement->last));
}

static void put_movement(struct output *out, const struct history_report *report,
			 const struct group_result *r, size_t index)
{
	const struct movement *movement = &r->movements[index];
	const struct finding *lead = &r->detection.findings[movement->lead];
	const char *why = movement_why(r, movement);
	size_t count;
	const struct finding **list = movement_findings(r, index, &count);

	output_string(out, "\n  ");
	if (movement->is_drift)
		output_format(out, "slow drift since %s: %s per run",
			      result_label(r, movement->first), format_ratio(lead->per_run));
	else
		put_range(out, r, movement);
	output_format(out, ": %s, %s", movement_word(r, movement), movement_cause_text(movement));
	if (movement->reason)
		output_format(out, ": %s", movement->reason);
	else if (*why)
		output_format(out, ": %s", why);
	output_char(out, '\n');
	for (size_t f = 0; f < count && f < report->top_count; f++)
		put_finding(out, r, list[f]);
	if (count > report->top_count)
		output_format(out, "    and %zu more\n", count - report->top_count);
	free(list);
}

static void put_noise(struct output *out, const struct group_result *r)
{
	static const char *const totals[] = {"gpu-time", "wall"};

	for (size_t t = 0; t < 2; t++) {
		const struct track *track = detection_find(&r->detection, r->history, LEVEL_TOTAL,
							   totals[t], METRIC_VALUE);
		double last, deviation;
		size_t count;

		if (!track)
			continue;
		deviation = track_noise(track, r->group, NOISE_SPAN, &count);
		last = track->values[track->count - 1];
		output_format(out, "  %s %s in the newest set", totals[t],
			      format_amount(r->history->rows.list[track->row].unit,
					    track_value(track, last)));
		if (isfinite(deviation))
			output_format(out, ", noise %s over the newest %zu sets",
				      format_percent(deviation), count);
		output_char(out, '\n');
	}
}

/* Breaks at which nothing moved. */
static void put_quiet_breaks(struct output *out, const struct group_result *r)
{
	for (size_t b = 0; b < r->group->break_count; b++) {
		const struct group_break *change = &r->group->breaks[b];
		struct movement quiet = {.change = change};
		bool has_moved = false;

		for (size_t m = 0; m < r->movement_count; m++)
			has_moved |= r->movements[m].change == change;
		if (!has_moved)
			output_format(out, "  %s: %s; no significant movement\n",
				      result_label(r, change->place), movement_why(r, &quiet));
	}
}

static void put_group(struct output *out, const struct history_report *report,
		      const struct group_result *r)
{
	size_t last = r->group->count - 1;

	output_format(out, "%s: %zu set%s of runs, %s to %s, %s\n", r->group->name, r->group->count,
		      last ? "s" : "", result_label(r, 0), result_label(r, last), group_basis(r));
	put_noise(out, r);
	if (r->group->count < 2 * SEGMENT_MIN)
		output_format(out, "  too few for change points: at least %d sets are needed\n",
			      2 * SEGMENT_MIN);
	else if (!r->movement_count)
		output_format(out, "  no movement found\n");
	put_quiet_breaks(out, r);
	for (size_t m = 0; m < r->movement_count; m++)
		put_movement(out, report, r, m);
}

static int write_text(struct output *out, const void *context)
{
	const struct history_report *report = context;

	for (size_t g = 0; g < report->results.count; g++) {
		if (g)
			output_char(out, '\n');
		put_group(out, report, &report->results.list[g]);
	}
	for (size_t n = 0; n < report->history->notes.count; n++)
		output_format(out, "%snote: %s\n", n ? "" : "\n", report->history->notes.lines[n]);
	return 0;
}

const struct output_writer report_text = {
	.name = "text",
	.help = "Write movements and notes for people",
	.write = write_text,
};

#define HISTORY_VERSION 1

static void json_put_label(struct json *json, const char *key, const struct group_result *r,
			   size_t place)
{

	json_string(json, key, result_label(r, place));
}

static void json_put_points(struct json *json, const struct group_result *r)
{
	json_begin_array(json, "points");
	for (size_t i = 0; i < r->group->count; i++) {
		const struct history_point *point = group_point(r->history, r->group, i);

		json_begin_object(json, NULL);
		json_put_label(json, "label", r, i);
		if (point->commit)
			json_string(json, "commit", point->commit);
		json_string(json, "origin", point->origin);
		json_number(json, "time_s", (double)point->time_ns / 1e9);
		json_u64(json, "runs", point->run_count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_put_finding(struct json *json, const struct group_result *r,
			     const struct finding *finding)
{
	static const char *const metrics[METRICS] = {"value", "count", "each"};
	const struct history_row *row = finding_row(r, finding);

	json_begin_object(json, NULL);
	json_string(json, "level", level_specs[row->level].word);
	json_string(json, "key", row->key);
	json_string(json, "name", row->name);
	json_string(json, "metric", metrics[finding_track(r, finding)->metric]);
	json_string(json, "unit", json_units[finding_unit(r, finding)]);
	json_number(json, "before", finding->before);
	json_number(json, "after", finding->after);
	json_number(json, "ratio", finding->ratio);
	json_number(json, "low_ratio", finding->low);
	json_number(json, "high_ratio", finding->high);
	json_number(json, "p_adjusted", finding->p);
	if (finding->is_drift)
		json_number(json, "ratio_per_run", finding->per_run);
	if (finding->reason)
		json_string(json, "accepted", finding->reason);
	json_end_object(json);
}

static void json_put_movements(struct json *json, const struct group_result *r)
{

	json_begin_array(json, "movements");
	for (size_t m = 0; m < r->movement_count; m++) {
		const struct movement *movement = &r->movements[m];
		size_t count;
		const struct finding **list = movement_findings(r, m, &count);

		json_begin_object(json, NULL);
		json_string(json, "kind", movement->is_drift ? "drift" : "step");
		json_string(json, "cause",
			    movement->reason ? "accepted" : cause_specs[movement->cause].word);
		json_string(json, "why",
			    movement->reason ? movement->reason : movement_why(r, movement));
		json_bool(json, "worse", movement->is_worse);
		json_u64(json, "place", movement->place);
		json_put_label(json, "at", r, movement->place);
		json_put_label(json, "after", r, movement->first ? movement->first - 1 : 0);
		json_put_label(json, "until", r, movement->last);
		json_begin_array(json, "rows");
		for (size_t f = 0; f < count; f++)
			json_put_finding(json, r, list[f]);
		free(list);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

/* The noise of each total, in successive stretches of runs, oldest first. */
static void json_put_noise(struct json *json, const struct group_result *r)
{
	json_begin_array(json, "noise");
	for (size_t t = 0; t < r->detection.track_count; t++) {
		const struct track *track = &r->detection.tracks[t];
		const struct history_row *row = &r->history->rows.list[track->row];

		if (row->level != LEVEL_TOTAL || track->metric != METRIC_VALUE)
			continue;
		json_begin_object(json, NULL);
		json_string(json, "total", row->key);
		json_number(json, "newest_ratio", track_noise(track, r->group, NOISE_SPAN, NULL));
		json_begin_array(json, "ratios");
		for (size_t begin = 0; begin < track->count; begin += NOISE_SPAN)
			json_number(
				json, NULL,
				track_noise_between(track, r->group, begin, begin + NOISE_SPAN));
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_put_group(struct json *json, const struct group_result *r)
{
	const struct history_point *last = group_point(r->history, r->group, r->group->count - 1);

	json_begin_object(json, NULL);
	json_string(json, "name", r->group->name);
	json_string(json, "program", last->properties[PROPERTY_PROGRAM]);
	json_string(json, "gpu", last->properties[PROPERTY_GPU]);
	json_string(json, "basis", group_basis(r));
	json_put_movements(json, r);
	json_put_noise(json, r);
	json_put_points(json, r);
	json_end_object(json);
}

static int write_json(struct output *out, const void *context)
{
	const struct history_report *report = context;
	struct json json = {.out = out};

	json_begin_document(&json, "xtrace-history", HISTORY_VERSION);
	json_bool(&json, "failed", report->has_failed);
	json_lines(&json, "problems", &report->history->problems);
	json_lines(&json, "notes", &report->history->notes);
	json_begin_array(&json, "groups");
	for (size_t g = 0; g < report->results.count; g++)
		json_put_group(&json, &report->results.list[g]);
	json_end_array(&json);
	json_end_object(&json);
	return 0;
}

const struct output_writer report_json = {
	.name = "json",
	.help = "Write movements, noise and runs as one JSON document",
	.write = write_json,
};

/* RFC 4180. A leading sign would make a spreadsheet run the text as a formula. */
static void csv_put_text(struct output *out, const char *text)
{
	output_char(out, '"');
	if (*text && strchr("=+-@", *text))
		output_char(out, '\'');
	for (; *text; text++) {
		if (*text == '"')
			output_char(out, '"');
		output_char(out, *text);
	}
	output_char(out, '"');
}

static void csv_put_number(struct output *out, double value)
{
	if (isfinite(value))
		output_format(out, ",%.9g", value);
	else
		output_char(out, ',');
}

static bool has_change(const struct track *track, size_t index)
{
	for (size_t c = 0; c < track->changes.count; c++)
		if (track->changes.list[c] == index)
			return true;
	return false;
}

static void csv_put_track(struct output *out, const struct group_result *r,
			  const struct track *track)
{
	const struct history_row *row = &r->history->rows.list[track->row];
	double mean = NAN;

	for (size_t i = 0, begin, end = 0; i < track->count; i++) {
		size_t place = track->places[i];

		/* The mean since the last change and until the next one. */
		if (i == end)
			mean = track_part_mean(track, r->group, i, &begin, &end);
		csv_put_text(out, r->group->name);
		output_format(out, ",%zu,", place);
		csv_put_text(out, result_label(r, place));
		output_format(out, ",%" PRIu64 ",%s,",
			      group_point(r->history, r->group, place)->time_ns / 1000000000,
			      level_specs[row->level].word);
		csv_put_text(out, row->name);
		output_format(out, ",%s", json_units[row->unit]);
		csv_put_number(out, track_value(track, track->values[i]));
		csv_put_number(out, group_value(r->history, r->group, track->row, place).count);
		csv_put_number(out, mean);
		output_format(out, ",%d\n", has_change(track, i));
	}
}

static int write_csv(struct output *out, const void *context)
{
	const struct history_report *report = context;

	output_string(out, "group,run,label,time_s,level,name,unit,value,count,mean,changed\n");
	for (size_t g = 0; g < report->results.count; g++) {
		const struct group_result *r = &report->results.list[g];

		for (size_t t = 0; t < r->detection.track_count; t++)
			if (r->detection.tracks[t].metric == METRIC_VALUE)
				csv_put_track(out, r, &r->detection.tracks[t]);
	}
	return 0;
}

const struct output_writer report_csv = {
	.name = "csv",
	.help = "Write the values of all rows and runs",
	.write = write_csv,
};
