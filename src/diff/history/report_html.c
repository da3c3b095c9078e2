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

struct chart_mark {
	size_t place;	   /* in the group */
	const char *class; /* colour */
	double ratio;
	bool is_drift;
	double before, after; /* ends of the line of a drift */
};

#define WIDTH	   1060.0
#define HEIGHT	   170.0
#define LEFT	   76.0
#define TOP	   18.0
#define BOTTOM	   22.0
#define TITLES_MAX 400 /* with more dots, one path draws all of them */

/* Writes a text with the characters that HTML reserves escaped. */
static void html_text(struct output *out, const char *text)
{
	static const struct {
		char c;
		const char *escape;
	} escapes[] = {
		{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

	for (; *text; text++) {
		const char *escape = NULL;

		for (size_t e = 0; e < sizeof(escapes) / sizeof(escapes[0]); e++)
			if (escapes[e].c == *text)
				escape = escapes[e].escape;
		if (escape)
			output_string(out, escape);
		else
			output_char(out, *text);
	}
}

struct scale {
	double low, high; /* of the values */
	size_t count;	  /* points of the group */
};

static double value_of(const struct track *track, size_t i)
{
	return track->is_log ? exp(track->values[i]) : track->values[i];
}

static double x_of(const struct scale *scale, double place)
{
	/* Half a step on each side keeps lines off the labels of the axis. */
	return LEFT + (place + 0.5) / (double)scale->count * (WIDTH - LEFT - 8.0);
}

static double y_of(const struct scale *scale, double value)
{
	return HEIGHT - BOTTOM -
	       (value - scale->low) / (scale->high - scale->low) * (HEIGHT - BOTTOM - TOP);
}

static struct scale make_scale(const struct group_result *r, const struct track *track)
{
	struct scale scale = {INFINITY, -INFINITY, r->group->count};
	double margin;

	for (size_t i = 0; i < track->count; i++) {
		scale.low = fmin(scale.low, value_of(track, i));
		scale.high = fmax(scale.high, value_of(track, i));
	}
	margin = (scale.high - scale.low) * 0.08;
	if (!(margin > 0.0))
		margin = scale.high != 0.0 ? fabs(scale.high) * 0.05 : 1.0;
	scale.low -= margin;
	scale.high += margin;
	return scale;
}

static void put_axis(struct output *out, const struct group_result *r, const struct scale *scale,
		     enum unit unit)
{
	char amount[AMOUNT_BYTES], label[LABEL_BYTES];
	const size_t ends[] = {0, r->group->count - 1};

	for (int i = 0; i < 3; i++) {
		double value = scale->low + (scale->high - scale->low) * (0.08 + 0.42 * i);
		double y = y_of(scale, value);

		output_format(out,
			      "<path class='axis' d='M%.0f %.1fH%.0f'/><text x='%.0f' y='%.1f' "
			      "text-anchor='end'>%s</text>\n",
			      LEFT, y, WIDTH - 8.0, LEFT - 6.0, y + 4.0,
			      format_amount(amount, unit, value));
	}
	for (int e = 0; e < 2; e++) {
		output_format(out, "<text x='%.1f' y='%.0f' text-anchor='%s'>",
			      e ? WIDTH - 8.0 : LEFT, HEIGHT - 6.0, e ? "end" : "start");
		html_text(out, point_label(label, group_point(r->history, r->group, ends[e])));
		output_string(out, "</text>\n");
	}
}

/* Each dot shows its run if there are few. */
static void put_dots(struct output *out, const struct group_result *r, const struct track *track,
		     const struct scale *scale, enum unit unit)
{
	bool has_titles = track->count <= TITLES_MAX;
	char label[LABEL_BYTES], amount[AMOUNT_BYTES];

	if (!has_titles)
		output_string(out, "<path class='dots' d='");
	for (size_t i = 0; i < track->count; i++) {
		double value = value_of(track, i), x = x_of(scale, (double)track->places[i]);

		if (!has_titles) {
			output_format(out, "M%.1f %.1fh0", x, y_of(scale, value));
			continue;
		}
		output_format(out, "<path class='dots' d='M%.1f %.1fh0'><title>", x,
			      y_of(scale, value));
		html_text(out,
			  point_label(label, group_point(r->history, r->group, track->places[i])));
		output_format(out, ": %s</title></path>\n", format_amount(amount, unit, value));
	}
	if (!has_titles)
		output_string(out, "'/>\n");
}

static void put_means(struct output *out, const struct group_result *r, const struct track *track,
		      const struct scale *scale)
{
	for (size_t i = 0, end; i < track->count; i = end) {
		double sum = 0.0, y;
		size_t begin;

		track_part(track, r->group, i, &begin, &end);
		for (size_t k = begin; k < end; k++)
			sum += track->values[k];
		sum /= (double)(end - begin);
		y = y_of(scale, track->is_log ? exp(sum) : sum);
		output_format(out, "<path class='mean' d='M%.1f %.1fH%.1f'/>\n",
			      x_of(scale, (double)track->places[begin] - 0.3), y,
			      x_of(scale, (double)track->places[end - 1] + 0.3));
	}
}

/* A dashed line at a step, or along a drift, with its size. */
static void put_mark(struct output *out, const struct group_result *r, const struct track *track,
		     const struct scale *scale, const struct chart_mark *mark)
{
	double x = x_of(scale, (double)mark->place - 0.5), y = 11.0;
	char label[LABEL_BYTES], ratio[AMOUNT_BYTES];
	bool is_left = x > WIDTH - 70.0;

	if (mark->is_drift) {
		double end = x_of(scale, (double)track->places[track->count - 1]);

		output_format(out, "<path class='mark %s' d='M%.1f %.1fL%.1f %.1f'>", mark->class,
			      x_of(scale, (double)mark->place), y_of(scale, mark->before), end,
			      y_of(scale, mark->after));
		x = end;
		is_left = true;
		/* Below the line, so that it does not hide the size of a step. */
		y = HEIGHT - BOTTOM - 6.0;
	} else {
		output_format(out, "<path class='mark %s' d='M%.1f %.0fV%.0f'>", mark->class, x,
			      TOP - 8.0, HEIGHT - BOTTOM);
	}
	output_string(out, "<title>");
	html_text(out, point_label(label, group_point(r->history, r->group, mark->place)));
	output_format(out, "</title></path><text x='%.1f' y='%.0f' text-anchor='%s'>%s%s</text>\n",
		      x + (is_left ? -4.0 : 4.0), y, is_left ? "end" : "start",
		      mark->is_drift ? "drift " : "", format_ratio(ratio, mark->ratio));
}

static void chart_write(struct output *out, const struct group_result *r, const struct track *track,
			const struct chart_mark *marks, size_t mark_count)
{
	const struct history_row *row = &r->history->rows[track->row];
	struct scale scale = make_scale(r, track);
	enum unit unit = track->metric == METRIC_COUNT ? UNIT_COUNT : row->unit;

	output_format(out, "<svg viewBox='0 0 %.0f %.0f' role='img'>\n", WIDTH, HEIGHT);
	put_axis(out, r, &scale, unit);
	put_dots(out, r, track, &scale, unit);
	put_means(out, r, track, &scale);
	for (size_t m = 0; m < mark_count; m++)
		put_mark(out, r, track, &scale, &marks[m]);
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

/* Red and green are for real movements only. */
static const char *class_of(const struct movement *movement)
{
	if (movement->reason || movement->cause != CAUSE_REAL)
		return "other";
	return movement->is_worse ? "bad" : "good";
}

static void put_finding(struct output *out, const struct group_result *r,
			const struct finding *finding)
{
	char title[ROW_TITLE_BYTES], before[AMOUNT_BYTES], after[AMOUNT_BYTES];
	char ratio[AMOUNT_BYTES], interval[FINDING_INTERVAL_BYTES];
	enum unit unit = finding_unit(r, finding);

	output_string(out, "<div><code>");
	html_text(out,
		  row_title(title, finding_row(r, finding), finding_track(r, finding)->metric));
	output_format(out, "</code><br>%s → %s, %s <span class=dim>(%s)</span></div>\n",
		      format_amount(before, unit, finding->before),
		      format_amount(after, unit, finding->after),
		      format_ratio(ratio, finding->ratio), finding_interval(interval, finding));
}

static void put_where(struct output *out, const struct group_result *r,
		      const struct movement *movement)
{
	char labels[2][LABEL_BYTES];
	size_t before = movement->first ? movement->first - 1 : 0;

	output_string(out, "<td class=n>");
	html_text(out, point_label(labels[0], group_point(r->history, r->group, movement->place)));
	point_label(labels[0], group_point(r->history, r->group, before));
	point_label(labels[1], group_point(r->history, r->group, movement->last));
	output_string(out, "<br><span class=dim>");
	if (movement->is_drift)
		output_string(out, "slow drift since then");
	else if (movement->first == movement->last)
		output_string(out, "after ");
	if (!movement->is_drift)
		html_text(out, labels[0]);
	if (!movement->is_drift && movement->first != movement->last) {
		output_string(out, "..");
		html_text(out, labels[1]);
	}
	output_string(out, "</span></td>");
}

static void put_movement(struct output *out, const struct group_result *r, size_t index)
{
	const struct movement *movement = &r->movements[index];
	const struct finding **list = xt_calloc(r->detection.finding_count + 1, sizeof(*list));
	char why[512];
	size_t count;

	count = movement_findings(r, index, list);
	output_string(out, "<tr>");
	put_where(out, r, movement);
	output_format(out, "<td class=n><span class=%s>%s</span><br>%s<div class=dim>",
		      class_of(movement), movement_word(r, movement),
		      movement_cause_text(movement));
	html_text(out, movement->reason ? movement->reason
					: movement_why(why, sizeof(why), r, movement));
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
	return r->history->rows[track->row].level == LEVEL_TOTAL && track->metric == METRIC_VALUE &&
	       !is_constant(track);
}

/* Marks the movements of a row in its chart. */
static void put_chart(struct output *out, const struct group_result *r, size_t number)
{
	const struct track *track = &r->detection.tracks[number];
	const struct history_row *row = &r->history->rows[track->row];
	struct chart_mark *marks = xt_calloc(r->detection.finding_count + 1, sizeof(*marks));
	char title[ROW_TITLE_BYTES];
	size_t count = 0;

	for (size_t f = 0; f < r->detection.finding_count; f++) {
		const struct finding *finding = &r->detection.findings[f];

		if (finding->track != number)
			continue;
		marks[count++] = (struct chart_mark){
			.place = finding->place,
			.class = class_of(&r->movements[finding->movement]),
			.ratio = finding->ratio,
			.is_drift = finding->is_drift,
			.before = finding->before,
			.after = finding->after,
		};
	}
	output_string(out, "<h3>");
	html_text(out, row_title(title, row, track->metric));
	output_string(out, "</h3>\n");
	chart_write(out, r, track, marks, count);
	free(marks);
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
	char basis[LABEL_BYTES];

	output_string(out, "<h2>");
	html_text(out, r->group->name);
	output_format(out, "</h2>\n<p class=dim>%zu sets of runs; ", r->group->count);
	html_text(out, group_basis(basis, r));
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
