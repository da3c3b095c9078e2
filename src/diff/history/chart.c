/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dots for values, lines for means between changes.
 */
#include "diff/history/chart.h"

#include <math.h>
#include <string.h>

#include "diff/base/format.h"
#include "diff/history/tracks.h"

#define WIDTH	   1060.0
#define HEIGHT	   170.0
#define LEFT	   76.0
#define TOP	   18.0
#define BOTTOM	   22.0
#define TITLES_MAX 400 /* with more dots, one path draws all of them */

void html_text(FILE *out, const char *text)
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
			fputs(escape, out);
		else
			fputc(*text, out);
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

static void put_axis(FILE *out, const struct group_result *r, const struct scale *scale,
		     enum unit unit)
{
	char amount[AMOUNT_BYTES], label[LABEL_BYTES];
	const size_t ends[] = {0, r->group->count - 1};

	for (int i = 0; i < 3; i++) {
		double value = scale->low + (scale->high - scale->low) * (0.08 + 0.42 * i);
		double y = y_of(scale, value);

		fprintf(out,
			"<path class='axis' d='M%.0f %.1fH%.0f'/><text x='%.0f' y='%.1f' "
			"text-anchor='end'>%s</text>\n",
			LEFT, y, WIDTH - 8.0, LEFT - 6.0, y + 4.0,
			format_amount(amount, unit, value));
	}
	for (int e = 0; e < 2; e++) {
		fprintf(out, "<text x='%.1f' y='%.0f' text-anchor='%s'>", e ? WIDTH - 8.0 : LEFT,
			HEIGHT - 6.0, e ? "end" : "start");
		html_text(out, point_label(label, group_point(r->history, r->group, ends[e])));
		fputs("</text>\n", out);
	}
}

/* Each dot shows its run if there are few. */
static void put_dots(FILE *out, const struct group_result *r, const struct track *track,
		     const struct scale *scale, enum unit unit)
{
	bool has_titles = track->count <= TITLES_MAX;
	char label[LABEL_BYTES], amount[AMOUNT_BYTES];

	if (!has_titles)
		fputs("<path class='dots' d='", out);
	for (size_t i = 0; i < track->count; i++) {
		double value = value_of(track, i), x = x_of(scale, (double)track->places[i]);

		if (!has_titles) {
			fprintf(out, "M%.1f %.1fh0", x, y_of(scale, value));
			continue;
		}
		fprintf(out, "<path class='dots' d='M%.1f %.1fh0'><title>", x, y_of(scale, value));
		html_text(out,
			  point_label(label, group_point(r->history, r->group, track->places[i])));
		fprintf(out, ": %s</title></path>\n", format_amount(amount, unit, value));
	}
	if (!has_titles)
		fputs("'/>\n", out);
}

static void put_means(FILE *out, const struct group_result *r, const struct track *track,
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
		fprintf(out, "<path class='mean' d='M%.1f %.1fH%.1f'/>\n",
			x_of(scale, (double)track->places[begin] - 0.3), y,
			x_of(scale, (double)track->places[end - 1] + 0.3));
	}
}

/* A dashed line at a step, or along a drift, with its size. */
static void put_mark(FILE *out, const struct group_result *r, const struct track *track,
		     const struct scale *scale, const struct chart_mark *mark)
{
	double x = x_of(scale, (double)mark->place - 0.5), y = 11.0;
	char label[LABEL_BYTES], ratio[AMOUNT_BYTES];
	bool is_left = x > WIDTH - 70.0;

	if (mark->is_drift) {
		double end = x_of(scale, (double)track->places[track->count - 1]);

		fprintf(out, "<path class='mark %s' d='M%.1f %.1fL%.1f %.1f'>", mark->class,
			x_of(scale, (double)mark->place), y_of(scale, mark->before), end,
			y_of(scale, mark->after));
		x = end;
		is_left = true;
		/* Below the line, so that it does not hide the size of a step. */
		y = HEIGHT - BOTTOM - 6.0;
	} else {
		fprintf(out, "<path class='mark %s' d='M%.1f %.0fV%.0f'>", mark->class, x,
			TOP - 8.0, HEIGHT - BOTTOM);
	}
	fputs("<title>", out);
	html_text(out, point_label(label, group_point(r->history, r->group, mark->place)));
	fprintf(out, "</title></path><text x='%.1f' y='%.0f' text-anchor='%s'>%s%s</text>\n",
		x + (is_left ? -4.0 : 4.0), y, is_left ? "end" : "start",
		mark->is_drift ? "drift " : "", format_ratio(ratio, mark->ratio));
}

void chart_write(FILE *out, const struct group_result *r, const struct track *track,
		 const struct chart_mark *marks, size_t mark_count)
{
	const struct history_row *row = &r->history->rows[track->row];
	struct scale scale = make_scale(r, track);
	enum unit unit = track->metric == METRIC_COUNT ? UNIT_COUNT : row->unit;

	fprintf(out, "<svg viewBox='0 0 %.0f %.0f' role='img'>\n", WIDTH, HEIGHT);
	put_axis(out, r, &scale, unit);
	put_dots(out, r, track, &scale, unit);
	put_means(out, r, track, &scale);
	for (size_t m = 0; m < mark_count; m++)
		put_mark(out, r, track, &scale, &marks[m]);
	fputs("</svg>\n", out);
}
