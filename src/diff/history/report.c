/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace history as text, JSON, CSV and HTML, and words that they share.
 * docs/HISTORY.md lists the members of the JSON document.
 */
#include "diff/history/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/base/level.h"
#include "diff/history/detect.h"
#include "log/base/compare.h"

#define NOISE_SPAN 30 /* runs that the displayed noise is of */

/* "slower", "faster", "more", "less": what happened to the row that represents a movement. */
static const char *movement_word(const struct group_result *r, const struct movement *movement)
{
	static const char *const words[][2] = {
		[UNIT_NS] = {"faster", "slower"},
		[UNIT_BYTES] = {"less", "more"},
		[UNIT_COUNT] = {"fewer", "more"},
	};
	const struct history_finding *lead = &r->detection.findings[movement->lead];
	bool is_more = lead->after > lead->before;

	if (movement->is_worse && !is_more)
		return "mixed";
	return words[finding_unit(r, lead)][is_more];
}

/* "+3.9 to +4.5 %" of a finding; "exact" if nothing varies. */
static const char *finding_interval(const struct history_finding *finding)
{
	if (!isfinite(finding->ratio) || !isfinite(finding->low))
		return "exact";
	return text_print("interval %s to %s", format_ratio(finding->low),
			  format_ratio(finding->high));
}

/* The cause in words, or "accepted". */
static const char *movement_cause_text(const struct movement *movement)
{
	return movement->reason ? "accepted" : cause_specs[movement->cause].text;
}

/*
 * Names the basis of the values of a group: "values of whole runs" or "per iteration (NVTX range
 * step)".
 */
static const char *group_basis(const struct group_result *r)
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
			const struct history_finding *finding)
{
	enum unit unit = finding_unit(r, finding);

	output_format(out, "    %s\n        %s -> %s, %s (%s)%s%s\n",
		      row_title(finding_row(r, finding), finding_track(r, finding)->metric),
		      format_amount(unit, finding->before), format_amount(unit, finding->after),
		      format_ratio(finding->ratio), finding_interval(finding),
		      finding->reason ? "; accepted: " : "",
		      finding->reason ? finding->reason : "");
}

/* Where a movement can have begun, besides its place. */
static const char *range_text(const struct group_result *r, const struct movement *movement)
{
	const char *before = result_label(r, movement->first ? movement->first - 1 : 0);

	if (movement->is_drift)
		return "slow drift since then";
	if (movement->first == movement->last)
		return text_print("after %s", before);
	return text_print("%s..%s", before, result_label(r, movement->last));
}

static void put_movement(struct output *out, const struct history_report *report,
			 const struct group_result *r, size_t index)
{
	const struct movement *movement = &r->movements[index];
	const struct history_finding *lead = &r->detection.findings[movement->lead];
	const char *why = movement_why(r, movement);
	size_t count;
	const struct history_finding **list = movement_findings(r, index, &count);

	output_string(out, "\n  ");
	if (movement->is_drift)
		output_format(out, "slow drift since %s: %s per run",
			      result_label(r, movement->first), format_ratio(lead->per_run));
	else
		output_format(out, "%s (%s%s)", result_label(r, movement->place),
			      movement->first == movement->last ? "" : "range ",
			      range_text(r, movement));
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
		bool has_moved = false, is_judged = change->place >= SEGMENT_MIN &&
						    r->group->count - change->place >= SEGMENT_MIN;

		for (size_t m = 0; m < r->movement_count; m++)
			has_moved |= r->movements[m].change == change;
		if (!has_moved)
			output_format(out, "  %s: %s; %s\n", result_label(r, change->place),
				      movement_why(r, &quiet),
				      is_judged ? "no significant movement"
						: "too few sets to judge");
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

int report_text(struct output *out, const void *context)
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

#define HISTORY_VERSION 1

static void json_put_points(struct json *json, const struct group_result *r)
{
	json_begin_array(json, "points");
	for (size_t i = 0; i < r->group->count; i++) {
		const struct history_point *point = group_point(r->history, r->group, i);

		json_begin_object(json, NULL);
		json_string(json, "label", result_label(r, i));
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
			     const struct history_finding *finding)
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
		const struct history_finding **list = movement_findings(r, m, &count);

		json_begin_object(json, NULL);
		json_string(json, "kind", movement->is_drift ? "drift" : "step");
		json_string(json, "cause",
			    movement->reason ? "accepted" : cause_specs[movement->cause].word);
		json_string(json, "why",
			    movement->reason ? movement->reason : movement_why(r, movement));
		json_bool(json, "worse", movement->is_worse);
		json_u64(json, "place", movement->place);
		json_string(json, "at", result_label(r, movement->place));
		json_string(json, "after",
			    result_label(r, movement->first ? movement->first - 1 : 0));
		json_string(json, "until", result_label(r, movement->last));
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

int report_json(struct output *out, const void *context)
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

int report_csv(struct output *out, const void *context)
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

/*
 * One page without scripts or external resources: movements as a table, and a chart for each total
 * and each row that moved. A chart is inline SVG: dots for values, lines for means between
 * changes.
 */
#define WIDTH	   1060.0
#define HEIGHT	   170.0
#define LEFT	   76.0
#define TOP	   18.0
#define BOTTOM	   22.0
#define TITLES_MAX 400 /* with more dots, one path draws all of them */

/* The text with the characters that HTML reserves escaped. */
static const char *html(const char *text)
{
	static const char *const escapes[128] = {['&'] = "&amp;",
						 ['<'] = "&lt;",
						 ['>'] = "&gt;",
						 ['"'] = "&quot;",
						 ['\''] = "&#39;"};

	return text_escaped(text, escapes);
}

/* Red and green are for real movements only. */
static const char *class_of(const struct movement *movement)
{
	if (movement->reason || movement->cause != CAUSE_REAL)
		return "other";
	return movement->is_worse ? "bad" : "good";
}

struct chart {
	struct output *out;
	const struct group_result *r;
	const struct track *track;
	enum unit unit;
	double low, high; /* of the values */
};

static double x_of(const struct chart *chart, double place)
{
	/* Half a step on each side keeps lines off the labels of the axis. */
	return LEFT + (place + 0.5) / (double)chart->r->group->count * (WIDTH - LEFT - 8.0);
}

static double y_of(const struct chart *chart, double value)
{
	return HEIGHT - BOTTOM -
	       (value - chart->low) / (chart->high - chart->low) * (HEIGHT - BOTTOM - TOP);
}

static void set_scale(struct chart *chart)
{
	double margin;

	chart->low = INFINITY;
	chart->high = -INFINITY;
	for (size_t i = 0; i < chart->track->count; i++) {
		double value = track_value(chart->track, chart->track->values[i]);

		chart->low = fmin(chart->low, value);
		chart->high = fmax(chart->high, value);
	}
	margin = (chart->high - chart->low) * 0.08;
	if (!(margin > 0.0))
		margin = chart->high != 0.0 ? fabs(chart->high) * 0.05 : 1.0;
	chart->low -= margin;
	chart->high += margin;
}

static void put_axis(const struct chart *chart)
{
	const size_t ends[] = {0, chart->r->group->count - 1};
	struct output *out = chart->out;

	for (int i = 0; i < 3; i++) {
		double value = chart->low + (chart->high - chart->low) * (0.08 + 0.42 * i);
		double y = y_of(chart, value);

		output_format(out,
			      "<path class='axis' d='M%.0f %.1fH%.0f'/><text x='%.0f' y='%.1f' "
			      "text-anchor='end'>%s</text>\n",
			      LEFT, y, WIDTH - 8.0, LEFT - 6.0, y + 4.0,
			      format_amount(chart->unit, value));
	}
	for (int e = 0; e < 2; e++)
		output_format(out, "<text x='%.1f' y='%.0f' text-anchor='%s'>%s</text>\n",
			      e ? WIDTH - 8.0 : LEFT, HEIGHT - 6.0, e ? "end" : "start",
			      html(result_label(chart->r, ends[e])));
}

/* Each dot shows its run if there are few. */
static void put_dots(const struct chart *chart)
{
	const struct track *track = chart->track;
	bool has_titles = track->count <= TITLES_MAX;
	struct output *out = chart->out;

	if (!has_titles)
		output_string(out, "<path class='dots' d='");
	for (size_t i = 0; i < track->count; i++) {
		double value = track_value(track, track->values[i]);

		output_format(out, "%sM%.1f %.1fh0", has_titles ? "<path class='dots' d='" : "",
			      x_of(chart, (double)track->places[i]), y_of(chart, value));
		if (!has_titles)
			continue;
		output_format(out, "'><title>%s: %s</title></path>\n",
			      html(result_label(chart->r, track->places[i])),
			      format_amount(chart->unit, value));
	}
	if (!has_titles)
		output_string(out, "'/>\n");
}

static void put_means(const struct chart *chart)
{
	const struct track *track = chart->track;

	for (size_t i = 0, end; i < track->count; i = end) {
		size_t begin;
		double y = y_of(chart, track_part_mean(track, chart->r->group, i, &begin, &end));

		output_format(chart->out, "<path class='mean' d='M%.1f %.1fH%.1f'/>\n",
			      x_of(chart, (double)track->places[begin] - 0.3), y,
			      x_of(chart, (double)track->places[end - 1] + 0.3));
	}
}

/* A dashed line at a step, or along a drift, with its size. */
static void put_mark(const struct chart *chart, const struct history_finding *finding)
{
	double x = x_of(chart, (double)finding->place - 0.5), y = 11.0;
	const char *class = class_of(&chart->r->movements[finding->movement]);
	struct output *out = chart->out;
	bool is_left = x > WIDTH - 70.0;

	if (finding->is_drift) {
		double end = x_of(chart, (double)chart->track->places[chart->track->count - 1]);

		output_format(out, "<path class='mark %s' d='M%.1f %.1fL%.1f %.1f'>", class,
			      x_of(chart, (double)finding->place), y_of(chart, finding->before),
			      end, y_of(chart, finding->after));
		x = end;
		is_left = true;
		/* Below the line, so that it does not hide the size of a step. */
		y = HEIGHT - BOTTOM - 6.0;
	} else {
		output_format(out, "<path class='mark %s' d='M%.1f %.0fV%.0f'>", class, x,
			      TOP - 8.0, HEIGHT - BOTTOM);
	}
	output_format(out,
		      "<title>%s</title></path><text x='%.1f' y='%.0f' text-anchor='%s'>%s%s"
		      "</text>\n",
		      html(result_label(chart->r, finding->place)), x + (is_left ? -4.0 : 4.0), y,
		      is_left ? "end" : "start", finding->is_drift ? "drift " : "",
		      format_ratio(finding->ratio));
}

/* A row over time, with the movements of the row. */
static void put_chart(struct output *out, const struct group_result *r, size_t number)
{
	const struct track *track = &r->detection.tracks[number];
	const struct history_row *row = &r->history->rows.list[track->row];
	struct chart chart = {
		out, r, track, track->metric == METRIC_COUNT ? UNIT_COUNT : row->unit, 0.0, 0.0};

	output_format(out, "<h3>%s</h3>\n<svg viewBox='0 0 %.0f %.0f' role='img'>\n",
		      html(row_title(row, track->metric)), WIDTH, HEIGHT);
	set_scale(&chart);
	put_axis(&chart);
	put_dots(&chart);
	put_means(&chart);
	for (size_t f = 0; f < r->detection.finding_count; f++)
		if (r->detection.findings[f].track == number)
			put_mark(&chart, &r->detection.findings[f]);
	output_string(out, "</svg>\n");
}

#define CHARTS_MAX 60 /* of a group */
#define ROWS_MAX   6  /* of a movement */

static const char style[] =
	":root{color-scheme:light dark;--bg:#fff;--fg:#1c2128;--dim:#667;--line:#d8dce2;"
	"--dot:#8b95a3;--mean:#1f6feb;--bad:#c62f2f;--good:#1a7f37;--other:#9a6700}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e4e8ed;--dim:#98a2ae;"
	"--line:#2c333c;--dot:#6b7683;--mean:#58a6ff;--bad:#ff6b63;--good:#4ac26b;"
	"--other:#d8a32b}}\n"
	"body{background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,sans-serif;"
	"margin:24px auto;max-width:1100px;padding:0 16px}\n"
	"h1{font-size:20px}h2{font-size:17px;margin-top:32px}h3{font-size:14px;margin:20px 0 4px}\n"
	"table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:5px 10px 5px 0;"
	"border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--dim);"
	"font-weight:500}\n"
	"td.n{white-space:nowrap;font-variant-numeric:tabular-nums}"
	"td.n div{white-space:normal;overflow-wrap:anywhere;width:15em}\n"
	"code{font-size:12.5px;overflow-wrap:anywhere}\n"
	".dim{color:var(--dim)}.bad{color:var(--bad)}.good{color:var(--good)}"
	".other{color:var(--other)}\n"
	"svg{display:block;width:100%;height:auto}svg text{fill:var(--dim);font-size:11px}\n"
	".axis{stroke:var(--line);fill:none}.dots{stroke:var(--dot);stroke-linecap:round;"
	"stroke-width:3.4;fill:none}\n"
	".mean{stroke:var(--mean);stroke-width:2;fill:none}.mark{stroke-width:1.3;"
	"stroke-dasharray:4 3}\n"
	".legend span{margin-right:18px}.key-dot{color:var(--dot)}.key-mean{color:var(--mean)}\n"
	".mark.bad{stroke:var(--bad)}.mark.good{stroke:var(--good)}.mark.other{stroke:var(--other)}"
	"\n";

static void html_put_finding(struct output *out, const struct group_result *r,
			     const struct history_finding *finding)
{
	enum unit unit = finding_unit(r, finding);

	output_format(out,
		      "<div><code>%s</code><br>%s → %s, %s <span class=dim>(%s)</span></div>\n",
		      html(row_title(finding_row(r, finding), finding_track(r, finding)->metric)),
		      format_amount(unit, finding->before), format_amount(unit, finding->after),
		      format_ratio(finding->ratio), finding_interval(finding));
}

static void html_put_movement(struct output *out, const struct group_result *r, size_t index)
{
	const struct movement *movement = &r->movements[index];
	size_t count;
	const struct history_finding **list = movement_findings(r, index, &count);

	output_format(out, "<tr><td class=n>%s<br><span class=dim>%s</span></td>",
		      html(result_label(r, movement->place)), html(range_text(r, movement)));
	output_format(out,
		      "<td class=n><span class=%s>%s</span><br>%s<div class=dim>%s</div></td><td>",
		      class_of(movement), movement_word(r, movement), movement_cause_text(movement),
		      html(movement->reason ? movement->reason : movement_why(r, movement)));
	for (size_t f = 0; f < count && f < ROWS_MAX; f++)
		html_put_finding(out, r, list[f]);
	if (count > ROWS_MAX)
		output_format(out, "<div class=dim>and %zu more</div>", count - ROWS_MAX);
	output_string(out, "</td></tr>\n");
	free(list);
}

static void html_put_movements(struct output *out, const struct group_result *r)
{
	if (!r->movement_count) {
		output_string(out, "<p>No movement found.</p>\n");
		return;
	}
	output_string(out, "<table><tr><th>where<th>what<th>rows</tr>\n");
	/* The newest first: it is the one that people look for. */
	for (size_t m = r->movement_count; m-- > 0;)
		html_put_movement(out, r, m);
	output_string(out, "</table>\n");
}

/* Rows that have a chart: totals that vary, and what moved. */
static bool has_chart(const struct group_result *r, size_t number)
{
	const struct track *track = &r->detection.tracks[number];

	for (size_t f = 0; f < r->detection.finding_count; f++)
		if (r->detection.findings[f].track == number)
			return true;
	return r->history->rows.list[track->row].level == LEVEL_TOTAL &&
	       track->metric == METRIC_VALUE && !series_is_constant(track->values, 0, track->count);
}

static void put_legend(struct output *out)
{
	static const struct {
		const char *class, *sign, *text;
	} keys[] = {
		{"key-dot", "•", "set of runs"},
		{"key-mean", "━", "mean between changes"},
		{"bad", "┆", "change for the worse"},
		{"good", "┆", "change for the better"},
		{"other", "┆", "accepted, or not caused by the program"},
	};

	output_string(out, "<p class='legend dim'>");
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		output_format(out, "<span><b class=%s>%s</b> %s</span>\n", keys[k].class,
			      keys[k].sign, keys[k].text);
	output_string(out, "</p>\n");
}

static void put_charts(struct output *out, const struct group_result *r)
{
	size_t shown = 0, left = 0;

	for (size_t t = 0; t < r->detection.track_count; t++) {
		if (!has_chart(r, t))
			continue;
		if (shown == CHARTS_MAX) {
			left++;
			continue;
		}
		if (!shown)
			put_legend(out);
		put_chart(out, r, t);
		shown++;
	}
	if (left)
		output_format(out,
			      "<p class=dim>%zu more rows moved; --csv has their values.</p>\n",
			      left);
}

static void html_put_group(struct output *out, const struct group_result *r)
{
	output_format(out, "<h2>%s</h2>\n<p class=dim>%zu sets of runs; %s</p>\n",
		      html(r->group->name), r->group->count, html(group_basis(r)));
	html_put_movements(out, r);
	put_charts(out, r);
}

static void html_put_lines(struct output *out, const char *heading, const struct problems *lines)
{
	if (lines->count)
		output_format(out, "<h2>%s</h2>\n<ul>\n", heading);
	for (size_t i = 0; i < lines->count; i++)
		output_format(out, "<li>%s</li>\n", html(lines->lines[i]));
	if (lines->count)
		output_string(out, "</ul>\n");
}

int report_html(struct output *out, const void *context)
{
	const struct history_report *report = context;

	output_format(
		out,
		"<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
		"<meta name=viewport content='width=device-width'>\n<title>xtrace history</title>\n"
		"<style>\n%s</style></head><body>\n<h1>xtrace history</h1>\n",
		style);
	html_put_lines(out, "Problems", &report->history->problems);
	for (size_t g = 0; g < report->results.count; g++)
		html_put_group(out, &report->results.list[g]);
	html_put_lines(out, "Notes", &report->history->notes);
	output_string(out, "</body></html>\n");
	return 0;
}
