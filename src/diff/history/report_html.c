/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page without scripts or external resources: movements as a table, and a chart for each total
 * and each row that moved. A chart is inline SVG: dots for values, lines for means between
 * changes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/history/detect.h"
#include "diff/history/movements.h"
#include "diff/history/report.h"

#define WIDTH	   1060.0
#define HEIGHT	   170.0
#define LEFT	   76.0
#define TOP	   18.0
#define BOTTOM	   22.0
#define TITLES_MAX 400 /* with more dots, one path draws all of them */

/* Writes a text with the characters that HTML reserves escaped. */
static void html_text(struct output *out, const char *text)
{
	static const char *const escapes[128] = {['&'] = "&amp;",
						 ['<'] = "&lt;",
						 ['>'] = "&gt;",
						 ['"'] = "&quot;",
						 ['\''] = "&#39;"};

	output_escaped(out, text, escapes);
}

static void put_label(struct output *out, const struct group_result *r, size_t place)
{

	html_text(out, result_label(r, place));
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
	for (int e = 0; e < 2; e++) {
		output_format(out, "<text x='%.1f' y='%.0f' text-anchor='%s'>",
			      e ? WIDTH - 8.0 : LEFT, HEIGHT - 6.0, e ? "end" : "start");
		put_label(out, chart->r, ends[e]);
		output_string(out, "</text>\n");
	}
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
		output_string(out, "'><title>");
		put_label(out, chart->r, track->places[i]);
		output_format(out, ": %s</title></path>\n", format_amount(chart->unit, value));
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
static void put_mark(const struct chart *chart, const struct finding *finding)
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
	output_string(out, "<title>");
	put_label(out, chart->r, finding->place);
	output_format(out, "</title></path><text x='%.1f' y='%.0f' text-anchor='%s'>%s%s</text>\n",
		      x + (is_left ? -4.0 : 4.0), y, is_left ? "end" : "start",
		      finding->is_drift ? "drift " : "", format_ratio(finding->ratio));
}

/* A row over time, with the movements of the row. */
static void put_chart(struct output *out, const struct group_result *r, size_t number)
{
	const struct track *track = &r->detection.tracks[number];
	const struct history_row *row = &r->history->rows.list[track->row];
	struct chart chart = {
		out, r, track, track->metric == METRIC_COUNT ? UNIT_COUNT : row->unit, 0.0, 0.0};

	output_string(out, "<h3>");
	html_text(out, row_title(row, track->metric));
	output_format(out, "</h3>\n<svg viewBox='0 0 %.0f %.0f' role='img'>\n", WIDTH, HEIGHT);
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

static void put_finding(struct output *out, const struct group_result *r,
			const struct finding *finding)
{
	enum unit unit = finding_unit(r, finding);

	output_string(out, "<div><code>");
	html_text(out, row_title(finding_row(r, finding), finding_track(r, finding)->metric));
	output_format(out, "</code><br>%s → %s, %s <span class=dim>(%s)</span></div>\n",
		      format_amount(unit, finding->before), format_amount(unit, finding->after),
		      format_ratio(finding->ratio), finding_interval(finding));
}

static void put_where(struct output *out, const struct group_result *r,
		      const struct movement *movement)
{
	bool is_range = movement->first != movement->last;

	output_string(out, "<td class=n>");
	put_label(out, r, movement->place);
	output_string(out, "<br><span class=dim>");
	output_string(out, movement->is_drift ? "slow drift since then" : is_range ? "" : "after ");
	if (!movement->is_drift)
		put_label(out, r, movement->first ? movement->first - 1 : 0);
	if (!movement->is_drift && is_range) {
		output_string(out, "..");
		put_label(out, r, movement->last);
	}
	output_string(out, "</span></td>");
}

static void put_movement(struct output *out, const struct group_result *r, size_t index)
{
	const struct movement *movement = &r->movements[index];
	size_t count;
	const struct finding **list = movement_findings(r, index, &count);

	output_string(out, "<tr>");
	put_where(out, r, movement);
	output_format(out, "<td class=n><span class=%s>%s</span><br>%s<div class=dim>",
		      class_of(movement), movement_word(r, movement),
		      movement_cause_text(movement));
	html_text(out, movement->reason ? movement->reason : movement_why(r, movement));
	output_string(out, "</div></td><td>");
	for (size_t f = 0; f < count && f < ROWS_MAX; f++)
		put_finding(out, r, list[f]);
	if (count > ROWS_MAX)
		output_format(out, "<div class=dim>and %zu more</div>", count - ROWS_MAX);
	output_string(out, "</td></tr>\n");
	free(list);
}

static void put_movements(struct output *out, const struct group_result *r)
{
	if (!r->movement_count) {
		output_string(out, "<p>No movement found.</p>\n");
		return;
	}
	output_string(out, "<table><tr><th>where<th>what<th>rows</tr>\n");
	/* The newest first: it is the one that people look for. */
	for (size_t m = r->movement_count; m-- > 0;)
		put_movement(out, r, m);
	output_string(out, "</table>\n");
}

static bool is_constant(const struct track *track)
{
	for (size_t i = 1; i < track->count; i++)
		if (track->values[i] != track->values[0])
			return false;
	return true;
}

/* Rows that have a chart: totals that vary, and what moved. */
static bool has_chart(const struct group_result *r, size_t number)
{
	const struct track *track = &r->detection.tracks[number];

	for (size_t f = 0; f < r->detection.finding_count; f++)
		if (r->detection.findings[f].track == number)
			return true;
	return r->history->rows.list[track->row].level == LEVEL_TOTAL &&
	       track->metric == METRIC_VALUE && !is_constant(track);
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

static void put_group(struct output *out, const struct group_result *r)
{

	output_string(out, "<h2>");
	html_text(out, r->group->name);
	output_format(out, "</h2>\n<p class=dim>%zu sets of runs; ", r->group->count);
	html_text(out, group_basis(r));
	output_string(out, "</p>\n");
	put_movements(out, r);
	put_charts(out, r);
}

static void put_lines(struct output *out, const char *heading, const struct problems *lines)
{
	if (lines->count)
		output_format(out, "<h2>%s</h2>\n<ul>\n", heading);
	for (size_t i = 0; i < lines->count; i++) {
		output_string(out, "<li>");
		html_text(out, lines->lines[i]);
		output_string(out, "</li>\n");
	}
	if (lines->count)
		output_string(out, "</ul>\n");
}

static int write_html(struct output *out, const void *context)
{
	const struct history_report *report = context;

	output_format(
		out,
		"<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
		"<meta name=viewport content='width=device-width'>\n<title>xtrace history</title>\n"
		"<style>\n%s</style></head><body>\n<h1>xtrace history</h1>\n",
		style);
	put_lines(out, "Problems", &report->history->problems);
	for (size_t g = 0; g < report->results.count; g++)
		put_group(out, &report->results.list[g]);
	put_lines(out, "Notes", &report->history->notes);
	output_string(out, "</body></html>\n");
	return 0;
}

const struct output_writer report_html = {
	.name = "html",
	.help = "Write a page with trend lines",
	.write = write_html,
};
