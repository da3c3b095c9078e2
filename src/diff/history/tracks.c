/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times are compared by their logarithms, counts as they are.
 */
#include "diff/history/tracks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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

	xt_grow(&d->tracks, &d->track_capacity, d->track_count + 1, sizeof(*d->tracks));
	track = &d->tracks[d->track_count++];
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
		if (metrics[m] == METRIC_COUNT && h->rows[row].level == LEVEL_TOTAL)
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
		const struct history_row *row = &h->rows[d->tracks[t].row];

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
		bool is_large = !level_specs[h->rows[track->row].level].is_gpu_time ||
				track->metric == METRIC_COUNT || track->cost >= SHARE_MIN * mean;

		track->is_tested = track->count >= 2 * SEGMENT_MIN && is_large;
	}
}

void tracks_make(struct detection *d, const struct history *h, const struct history_group *group)
{
	struct series series = {
		.values = xt_calloc(group->count + 1, sizeof(*series.values)),
		.places = xt_calloc(group->count + 1, sizeof(*series.places)),
	};

	for (size_t r = 0; r < h->row_count; r++)
		if (!group->is_new_name[r])
			add_row(d, &series, h, group, r);
	select_tested(d, h);
	free(series.values);
	free(series.places);
}

size_t track_index(const struct track *track, size_t place)
{
	size_t low = 0, high = track->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (track->places[middle] < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void track_part(const struct track *track, const struct history_group *group, size_t index,
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
