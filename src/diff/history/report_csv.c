/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line for each row and run, for spreadsheets and plots.
 */
#include "diff/history/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/history/tracks.h"
#include "diff/output/json_parts.h"

/* RFC 4180. A leading sign would make a spreadsheet run the text as a formula. */
static void put_text(FILE *out, const char *text)
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

static void put_number(FILE *out, double value)
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

static void put_track(FILE *out, const struct group_result *r, const struct track *track)
{
	const struct history_row *row = &r->history->rows[track->row];
	double *means = xt_calloc(track->count + 1, sizeof(*means));
	char label[LABEL_BYTES];

	part_means(r, track, means);
	for (size_t i = 0; i < track->count; i++) {
		const struct history_point *point =
			group_point(r->history, r->group, track->places[i]);

		put_text(out, r->group->name);
		fprintf(out, ",%zu,", track->places[i]);
		put_text(out, point_label(label, point));
		fprintf(out, ",%" PRIu64 ",%s,", point->time_ns / 1000000000,
			level_specs[row->level].word);
		put_text(out, row->name);
		fprintf(out, ",%s", json_units[row->unit]);
		put_number(out, track->is_log ? exp(track->values[i]) : track->values[i]);
		put_number(out,
			   group_value(r->history, r->group, track->row, track->places[i]).count);
		put_number(out, means[i]);
		fprintf(out, ",%d\n", has_change(track, i));
	}
	free(means);
}

static int write_csv(FILE *out, const struct history_report *report)
{
	fputs("group,run,label,time_s,level,name,unit,value,count,mean,changed\n", out);
	for (size_t g = 0; g < report->result_count; g++) {
		const struct group_result *r = &report->results[g];

		for (size_t t = 0; t < r->detection.track_count; t++)
			if (r->detection.tracks[t].metric == METRIC_VALUE)
				put_track(out, r, &r->detection.tracks[t]);
	}
	return 0;
}

const struct history_output report_csv = {
	.name = "csv",
	.help = "Write the values of all rows and runs",
	.write = write_csv,
};
