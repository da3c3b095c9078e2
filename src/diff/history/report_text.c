/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text output, and words that all outputs use.
 */
#include "diff/history/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/format.h"
#include "diff/history/tracks.h"

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

static int write_text(FILE *out, const struct history_report *report)
{
	for (size_t g = 0; g < report->result_count; g++) {
		if (g)
			fputc('\n', out);
		put_group(out, report, &report->results[g]);
	}
	for (size_t n = 0; n < report->history->notes.count; n++)
		fprintf(out, "%snote: %s\n", n ? "" : "\n", report->history->notes.lines[n]);
	return 0;
}

const struct history_output report_text = {
	.name = "text",
	.help = "Write movements and notes for people",
	.write = write_text,
};
