/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each row is a track of values over time: times by their logarithms, counts as they are. Each
 * track is searched alone. Holm's procedure over the rows of a level then decides.
 */
#include "diff/history/detect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/stats/statistics.h"
#include "log/base/compare.h"

#define NOISE_MIN                                                                                  \
	1e-4 /* relative standard deviation that values have at least, as in xtrace diff */
#define SHARE_MIN 5e-4 /* of the GPU time, as in xtrace diff */

/* One row's values while its track is made. */
struct series {
	double *values;
	size_t *places;
	size_t count;
	bool is_positive, is_constant;
	double sum, largest;
};

static void take_value(struct series *series, double value, size_t place)
{
	if (series->count && value != series->values[0])
		series->is_constant = false;
	series->is_positive &= value > 0.0;
	series->sum += value;
	series->largest = fmax(series->largest, fabs(value));
	series->places[series->count] = place;
	series->values[series->count++] = value;
}

/* A missing row has the count 0. Its value is unknown. */
static void read_series(struct series *series, const struct history *h,
			const struct history_group *group, size_t row, enum metric metric)
{
	series->count = 0;
	series->is_positive = series->is_constant = true;
	series->sum = series->largest = 0.0;
	for (size_t i = 0; i < group->count; i++) {
		struct history_value value = group_value(h, group, row, i);

		if (metric == METRIC_COUNT)
			take_value(series, isnan(value.value) ? 0.0 : value.count, i);
		else if (!isnan(value.value))
			take_value(series, value.value, i);
	}
}

static void add_track(struct detection *d, const struct series *series, size_t row,
		      enum metric metric)
{
	struct track *track;

	track = xt_new(d->tracks, d->track_count, d->track_capacity);
	*track = (struct track){
		.row = row,
		.metric = metric,
		.count = series->count,
		.is_log = metric == METRIC_VALUE && series->is_positive,
		.cost = series->sum / (double)series->count,
		.values = xt_calloc(series->count + 1, sizeof(*track->values)),
		.places = xt_calloc(series->count + 1, sizeof(*track->places)),
	};
	track->floor = track->is_log ? NOISE_MIN : NOISE_MIN * series->largest;
	memcpy(track->places, series->places, series->count * sizeof(*track->places));
	for (size_t i = 0; i < series->count; i++)
		track->values[i] = track->is_log ? log(series->values[i]) : series->values[i];
}

static void add_row(struct detection *d, struct series *series, const struct history *h,
		    const struct history_group *group, size_t row)
{
	static const enum metric metrics[] = {METRIC_VALUE, METRIC_COUNT};

	for (size_t m = 0; m < 2; m++) {
		/* The numbers of items of totals are totals themselves. */
		if (metrics[m] == METRIC_COUNT && h->rows.list[row].level == LEVEL_TOTAL)
			continue;
		read_series(series, h, group, row, metrics[m]);
		if (series->count > 1 && !(series->is_constant && metrics[m] == METRIC_COUNT))
			add_track(d, series, row, metrics[m]);
	}
}

const struct track *detection_find(const struct detection *d, const struct history *h,
				   enum level level, const char *key, enum metric metric)
{
	for (size_t t = 0; t < d->track_count; t++) {
		const struct history_row *row = &h->rows.list[d->tracks[t].row];

		if (row->level == level && d->tracks[t].metric == metric && !strcmp(row->key, key))
			return &d->tracks[t];
	}
	return NULL;
}

/* Rows of GPU time that matter little are not tested, so that they do not cost power. */
static void select_tested(struct detection *d, const struct history *h)
{
	const struct track *gpu = detection_find(d, h, LEVEL_TOTAL, "gpu-time", METRIC_VALUE);
	double mean = gpu ? gpu->cost : 0.0;

	for (size_t t = 0; t < d->track_count; t++) {
		struct track *track = &d->tracks[t];
		bool is_large = !level_specs[h->rows.list[track->row].level].is_gpu_time ||
				track->metric == METRIC_COUNT || track->cost >= SHARE_MIN * mean;

		track->is_tested = track->count >= 2 * SEGMENT_MIN && is_large;
	}
}

/* Adds the tracks of all rows. Constant ones are left out. */
static void tracks_make(struct detection *d, const struct history *h,
			const struct history_group *group)
{
	struct series series = {
		.values = xt_calloc(group->count + 1, sizeof(*series.values)),
		.places = xt_calloc(group->count + 1, sizeof(*series.places)),
	};

	for (size_t r = 0; r < h->rows.count; r++)
		if (!group->is_new_name[r])
			add_row(d, &series, h, group, r);
	select_tested(d, h);
	free_all(series.values, series.places);
}

/* The index of the first value at or after a point of the group. */
static size_t track_index(const struct track *track, size_t place)
{
	return FIRST_NOT(i, 0, track->count, track->places[i] < place);
}

/* The part of the track between breaks and changes that contains a value. */
static void track_part(const struct track *track, const struct history_group *group, size_t index,
		       size_t *begin_out, size_t *end_out)
{
	*begin_out = 0;
	*end_out = track->count;
	for (size_t b = 0; b < group->break_count; b++) {
		size_t at = track_index(track, group->breaks[b].place);

		if (at <= index)
			*begin_out = at;
		else if (at < *end_out)
			*end_out = at;
	}
	for (size_t c = 0; c < track->changes.count; c++) {
		size_t at = track->changes.list[c];

		if (at <= index && at > *begin_out)
			*begin_out = at;
		else if (at > index && at < *end_out)
			*end_out = at;
	}
}

double track_value(const struct track *track, double value)
{
	return track->is_log ? exp(value) : value;
}

double track_part_mean(const struct track *track, const struct history_group *group, size_t index,
		       size_t *begin_out, size_t *end_out)
{
	double sum = 0.0;

	track_part(track, group, index, begin_out, end_out);
	for (size_t i = *begin_out; i < *end_out; i++)
		sum += track->values[i];
	return track_value(track, sum / (double)(*end_out - *begin_out));
}

#define BREAK_ALPHA 0.01 /* of a row that changed together with the machine or the method */

void detection_free(struct detection *d)
{
	for (size_t t = 0; t < d->track_count; t++) {
		free_all(d->tracks[t].values, d->tracks[t].places, d->tracks[t].changes.list);
	}
	free_all(d->tracks, d->findings, d->total_steps.list);
	*d = (struct detection){0};
}

bool track_compare(const struct track *track, const struct history_group *group, size_t place,
		   size_t span, struct step *step)
{
	size_t at = track_index(track, place), begin, end, unused;

	if (at == 0 || at >= track->count)
		return false;
	track_part(track, group, at - 1, &begin, &unused);
	track_part(track, group, at, &unused, &end);
	begin = at - begin > span ? at - span : begin;
	end = end - at > span ? at + span : end;
	if (at - begin < SEGMENT_MIN || end - at < SEGMENT_MIN)
		return false;
	step_measure(step, track->values, begin, at, end, track->floor);
	return true;
}

double track_noise(const struct track *track, const struct history_group *group, size_t span,
		   size_t *count_out)
{
	size_t begin, end;

	track_part(track, group, track->count - 1, &begin, &end);
	begin = end - begin > span ? end - span : begin;
	if (count_out)
		*count_out = end - begin;
	return track_noise_between(track, group, begin, end);
}

double track_noise_between(const struct track *track, const struct history_group *group,
			   size_t begin, size_t end)
{
	double squares = 0.0, freedom = 0.0;

	end = end < track->count ? end : track->count;
	while (begin < end) {
		size_t unused, part_end;
		double deviation;

		track_part(track, group, begin, &unused, &part_end);
		part_end = part_end < end ? part_end : end;
		deviation = series_deviation(track->values, begin, part_end);
		if (isfinite(deviation)) {
			squares += deviation * deviation * (double)(part_end - begin - 1);
			freedom += (double)(part_end - begin - 1);
		}
		begin = part_end;
	}
	squares = sqrt(squares / freedom);
	return track->is_log ? squares : squares / fabs(track->cost);
}

/* The end of the part of the track before the next break. */
static size_t break_end(const struct track *track, const struct history_group *group, size_t index)
{
	for (size_t b = 0; b < group->break_count; b++) {
		size_t at = track_index(track, group->breaks[b].place);

		if (at > index)
			return at;
	}
	return track->count;
}

/* Searches a track between breaks. Sets its changes to those that would pass without other rows. */
static void search_track(struct track *track, const struct history_group *group)
{
	for (size_t begin = 0, end; begin < track->count; begin = end) {
		struct places places = {0};

		end = break_end(track, group, begin);
		change_points_search(&places, track->values, begin, end);
		change_points_prune(&places, track->values, begin, end, track->floor);
		for (size_t p = 0; p < places.count; p++)
			places_add(&track->changes, places.list[p]);
		free(places.list);
	}
}

/* Sets what the step or the line of a track means in its unit. */
static void describe(struct finding *finding, const struct track *track, double before,
		     double after, double low, double high)
{
	if (track->is_log) {
		finding->before = exp(before);
		finding->after = exp(after);
		finding->ratio = expm1(after - before);
		finding->low = expm1(low);
		finding->high = expm1(high);
		return;
	}
	finding->before = before;
	finding->after = after;
	finding->ratio = (after - before) / fabs(before);
	finding->low = low / fabs(before);
	finding->high = high / fabs(before);
}

static void add_finding(struct detection *d, const struct finding *finding)
{
	xt_append(d->findings, d->finding_count, d->finding_capacity, *finding);
}

static void add_step(struct detection *d, size_t track_number, const struct step *step,
		     bool is_at_break)
{
	const struct track *track = &d->tracks[track_number];
	struct finding finding = {
		.track = track_number,
		.is_at_break = is_at_break,
		.place = track->places[step->place],
		/* Points that lack the row are inside the range. */
		.first = track->places[step->first - 1] + 1,
		.last = track->places[step->last],
		.p = step->p,
	};

	describe(&finding, track, step->before, step->after, step->low, step->high);
	add_finding(d, &finding);
}

static void add_steps(struct detection *d, const struct history_group *group, size_t track_number)
{
	struct track *track = &d->tracks[track_number];
	struct step step;

	for (size_t c = 0; c < track->changes.count; c++) {
		size_t at = track->changes.list[c], begin, end, unused;

		track_part(track, group, at - 1, &begin, &unused);
		track_part(track, group, at, &unused, &end);
		step_measure(&step, track->values, begin, at, end, track->floor);
		step.p = fmin(1.0, step.p * change_points_choices(&track->changes, c, begin, end));
		add_step(d, track_number, &step, false);
	}
}

/* Compares both sides of the points where the machine or the method changed. */
static void add_breaks(struct detection *d, const struct history_group *group, size_t track_number)
{
	const struct track *track = &d->tracks[track_number];
	struct step step;

	for (size_t b = 0; b < group->break_count; b++) {
		if (!track_compare(track, group, group->breaks[b].place, WINDOW, &step))
			continue;
		/* The place is known: its range is one point, and one place was tested. */
		step.first = step.last = step.place;
		add_step(d, track_number, &step, true);
	}
}

/* Steps of totals are steps of other rows, too, though these are too noisy to show it. */
static void find_cuts(struct places *cuts, const struct detection *d, const struct track *track)
{
	for (size_t p = 0; p < d->total_steps.count; p++)
		places_add(cuts, track_index(track, d->total_steps.list[p]));
}

static void add_drift(struct detection *d, const struct history_group *group, size_t track_number)
{
	struct places cuts = {0};
	const struct track *track = &d->tracks[track_number];
	struct finding finding = {.track = track_number, .is_drift = true};
	struct trend trend;
	double length, middle, mean = 0.0;
	size_t begin, end;

	if (track->metric != METRIC_VALUE)
		return;
	find_cuts(&cuts, d, track);
	track_part(track, group, track->count - 1, &begin, &end);
	trend_measure(&trend, track->values, &cuts, begin, end, track->floor);
	free(cuts.list);
	if (trend.p > DRIFT_ALPHA_TOTAL)
		return;
	for (size_t i = trend.first; i < end; i++)
		mean += track->values[i] / (double)(end - trend.first);
	length = (double)(end - trend.first - 1);
	middle = length / 2.0;
	finding.first = finding.place = track->places[trend.first];
	finding.last = track->places[end - 1];
	finding.p = trend.p;
	finding.per_run = track->is_log ? expm1(trend.slope) : trend.slope / fabs(mean);
	describe(&finding, track, mean - middle * trend.slope, mean + middle * trend.slope,
		 trend.low * length, trend.high * length);
	add_finding(d, &finding);
}

/* Findings that are tested together: one level and metric, and one stretch of time. */
struct family {
	enum level level;
	enum metric metric;
	bool is_drift, is_at_break;
	size_t block;
};

static struct family family_of(const struct detection *d, const struct history *h,
			       const struct finding *finding)
{
	const struct track *track = &d->tracks[finding->track];

	return (struct family){
		.level = h->rows.list[track->row].level,
		.metric = track->metric,
		.is_drift = finding->is_drift,
		.is_at_break = finding->is_at_break,
		.block = finding->is_drift	? 0
			 : finding->is_at_break ? finding->place
						: finding->place / WINDOW_STEP,
	};
}

static bool is_same_family(const struct family *a, const struct family *b)
{
	return a->level == b->level && a->metric == b->metric && a->is_drift == b->is_drift &&
	       a->is_at_break == b->is_at_break && a->block == b->block;
}

/*
 * Adjusts the p-values of one family. Rows without a finding have the p-value 1. Half of the error
 * rate is shared equally and half by cost, as in xtrace diff.
 */
static void adjust_family(struct detection *d, const struct history *h, const struct family *family)
{
	double *p = xt_calloc(d->track_count + d->finding_count + 1, sizeof(*p));
	double *weights = xt_calloc(d->track_count + d->finding_count + 1, sizeof(*weights));
	size_t *members = xt_calloc(d->finding_count + 1, sizeof(*members));
	size_t count = 0, member_count = 0;
	double costs = 0.0, sum = 0.0;

	for (size_t f = 0; f < d->finding_count; f++) {
		struct family other = family_of(d, h, &d->findings[f]);

		if (!is_same_family(family, &other))
			continue;
		members[member_count++] = f;
		p[count] = d->findings[f].p;
		weights[count] = fabs(d->tracks[d->findings[f].track].cost);
		costs += weights[count++];
	}
	for (size_t t = 0; t < d->track_count; t++) {
		if (!d->tracks[t].is_tested || d->tracks[t].metric != family->metric ||
		    h->rows.list[d->tracks[t].row].level != family->level)
			continue;
		p[count] = 1.0;
		weights[count] = fabs(d->tracks[t].cost);
		costs += weights[count++];
	}
	for (size_t i = 0; i < count; i++) {
		weights[i] = 1.0 / (double)count + (costs > 0.0 ? weights[i] / costs : 0.0);
		sum += weights[i];
	}
	for (size_t i = 0; i < count; i++)
		weights[i] /= sum;
	holm_adjust(p, weights, count);
	for (size_t m = 0; m < member_count; m++)
		d->findings[members[m]].p = p[m];
	free_all(p, weights, members);
}

static void adjust(struct detection *d, const struct history *h)
{
	uint8_t *is_done = xt_calloc(d->finding_count + 1, 1);

	for (size_t f = 0; f < d->finding_count; f++) {
		struct family family = family_of(d, h, &d->findings[f]);

		if (is_done[f])
			continue;
		for (size_t k = f; k < d->finding_count; k++) {
			struct family other = family_of(d, h, &d->findings[k]);

			is_done[k] |= is_same_family(&family, &other);
		}
		adjust_family(d, h, &family);
	}
	free(is_done);
}

static double alpha_of(const struct detection *d, const struct history *h,
		       const struct finding *finding)
{
	bool is_total = h->rows.list[d->tracks[finding->track].row].level == LEVEL_TOTAL;

	if (finding->is_drift)
		return is_total ? DRIFT_ALPHA_TOTAL : DRIFT_ALPHA_ROWS;
	return finding->is_at_break ? BREAK_ALPHA : STEP_ALPHA;
}

/* Drops findings that are not significant among the rows of their level, and their changes. */
static void drop_insignificant(struct detection *d, const struct history *h)
{
	size_t kept = 0;

	for (size_t f = 0; f < d->finding_count; f++) {
		const struct finding *finding = &d->findings[f];
		struct track *track = &d->tracks[finding->track];

		if (finding->p <= alpha_of(d, h, finding)) {
			d->findings[kept++] = *finding;
			continue;
		}
		for (size_t c = 0; !finding->is_drift && c < track->changes.count; c++)
			if (track->places[track->changes.list[c]] == finding->place)
				places_remove(&track->changes, c--);
	}
	d->finding_count = kept;
}

/* Adds the findings of one kind for all tested tracks, and keeps the significant ones. */
static void test_all(struct detection *d, const struct history *h,
		     const struct history_group *group,
		     void (*add)(struct detection *, const struct history_group *, size_t))
{
	struct detection part = *d;

	part.findings = NULL;
	part.finding_count = part.finding_capacity = 0;
	for (size_t t = 0; t < d->track_count; t++)
		if (d->tracks[t].is_tested)
			add(&part, group, t);
	adjust(&part, h);
	drop_insignificant(&part, h);
	for (size_t f = 0; f < part.finding_count; f++)
		add_finding(d, &part.findings[f]);
	free(part.findings);
}

void detection_make(struct detection *d, const struct history *h, const struct history_group *group)
{
	*d = (struct detection){0};
	tracks_make(d, h, group);
	for (size_t i = 0; i < d->track_count; i++)
		search_track(&d->tracks[i], group);
	test_all(d, h, group, add_steps);
	for (size_t f = 0; f < d->finding_count; f++)
		if (h->rows.list[d->tracks[d->findings[f].track].row].level == LEVEL_TOTAL)
			places_add(&d->total_steps, d->findings[f].place);
	/* Means beside breaks and trends need the changes that are left. */
	test_all(d, h, group, add_breaks);
	test_all(d, h, group, add_drift);
}
