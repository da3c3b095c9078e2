/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change points of a series of numbers, and slow trends. E-divisive [1] splits windows of the
 * series, and Student's t test replaces its permutation test, as in Hunter [2].
 * docs/internals/HISTORY_METHOD.md describes the method and has the references.
 *
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

#define WINDOW_STEP	  25	/* distance of the starts of windows */
#define STEP_ALPHA	  0.005 /* chance of a false change point per family and WINDOW_STEP runs */
#define SCAN_ALPHA	  1e-3	/* of the candidates that the search returns */
#define DRIFT_MIN	  15	/* values that a trend needs */
#define DRIFT_WINDOW	  30	/* the shortest window of a long series; longer ones double */
#define DRIFT_ALPHA_TOTAL 0.03	/* chance of a false drift of a total, at each call */
#define DRIFT_ALPHA_ROWS  0.005 /* the same for each other level */
#define HIDDEN_DEPTH	  1    /* insignificant splits whose parts are searched, one in the other */
#define PLACE_LIKELIHOOD  7.35 /* 95 % quantile of the likelihood ratio of a place (Hansen 2000) */

/* Keeps the order, without duplicates. */
static void places_add(struct places *places, size_t place)
{
	size_t at = places->count;

	while (at > 0 && places->list[at - 1] > place)
		at--;
	if (at > 0 && places->list[at - 1] == place)
		return;
	list_reserve(*places, places->count + 1);
	array_insert(places->list, places->count, at, place);
}

static void places_remove(struct places *places, size_t index)
{
	array_remove(places->list, places->count, index);
}

/* Sum of |x[i] - from| over a range. */
static double distance_sum(const double *x, size_t begin, size_t end, double from)
{
	double sum = 0.0;

	for (size_t i = begin; i < end; i++)
		sum += fabs(x[i] - from);
	return sum;
}

/* The place with the largest energy distance between both sides, or 0 if there is none. */
static size_t best_split(const double *x, size_t begin, size_t end)
{
	double left = 0.0, right = 0.0, total, best = 0.0;
	size_t place = 0;

	for (size_t i = begin; i < end; i++)
		right += distance_sum(x, i + 1, end, x[i]);
	total = right;
	for (size_t i = begin; i + SEGMENT_MIN < end; i++) {
		double m = (double)(i + 1 - begin), n = (double)(end - i - 1), energy;

		left += distance_sum(x, begin, i, x[i]);
		right -= distance_sum(x, i + 1, end, x[i]);
		if (m < SEGMENT_MIN)
			continue;
		energy = 2.0 * (total - left - right) / (m * n) - 2.0 * left / (m * (m - 1.0)) -
			 2.0 * right / (n * (n - 1.0));
		energy *= m * n / (m + n);
		if (energy > best) {
			best = energy;
			place = i + 1;
		}
	}
	return place;
}

static void sum_squares(const double *x, size_t begin, size_t end, double *mean_out,
			double *squares_out)
{
	double sum = 0.0, squares = 0.0;

	for (size_t i = begin; i < end; i++)
		sum += x[i];
	*mean_out = sum / (double)(end - begin);
	for (size_t i = begin; i < end; i++)
		squares += (x[i] - *mean_out) * (x[i] - *mean_out);
	*squares_out = squares;
}

/* Standard deviation around the mean. NAN for less than two values. */
static double series_deviation(const double *x, size_t begin, size_t end)
{
	double mean, squares;

	if (end < begin + 2)
		return NAN;
	sum_squares(x, begin, end, &mean, &squares);
	return sqrt(squares / (double)(end - begin - 1));
}

/* The p-value of Student's t test at a place, without any correction. */
static double split_p(const double *x, size_t begin, size_t place, size_t end)
{
	double m = (double)(place - begin), n = (double)(end - place), means[2], squares[2];
	double variance;

	sum_squares(x, begin, place, &means[0], &squares[0]);
	sum_squares(x, place, end, &means[1], &squares[1]);
	variance = (squares[0] + squares[1]) / (m + n - 2.0) * (1.0 / m + 1.0 / n);
	if (!(variance > 0.0))
		return means[0] == means[1] ? 1.0 : 0.0;
	return student_t_p_value((means[1] - means[0]) / sqrt(variance), m + n - 2.0);
}

/*
 * Splits a window until no part has another candidate. A short excursion hides itself: neither end
 * is significant alone. So the parts of an insignificant split are searched, too, and the split
 * becomes a candidate if they contain one.
 */
static void search_window(struct places *places, const double *x, size_t begin, size_t end,
			  int depth)
{
	size_t place, before = places->count;
	bool is_significant;

	if (end < begin + 2 * SEGMENT_MIN)
		return;
	place = best_split(x, begin, end);
	if (!place)
		return;
	is_significant = split_p(x, begin, place, end) <= SCAN_ALPHA;
	if (!is_significant && depth == HIDDEN_DEPTH)
		return;
	search_window(places, x, begin, place, depth + !is_significant);
	search_window(places, x, place, end, depth + !is_significant);
	if ((is_significant || places->count > before))
		places_add(places, place);
}

bool series_is_constant(const double *x, size_t begin, size_t end)
{
	for (size_t i = begin + 1; i < end; i++)
		if (x[i] != x[begin])
			return false;
	return true;
}

/*
 * Adds candidates in values[begin..end) to places, which are empty. Windows start at begin and
 * every WINDOW_STEP later, and one ends at the last value.
 */
static void change_points_search(struct places *places, const double *x, size_t begin, size_t end)
{
	size_t start = begin;

	/* Constant rows, such as most counts, have no candidates. */
	for (; start + WINDOW <= end; start += WINDOW_STEP)
		if (!series_is_constant(x, start, start + WINDOW))
			search_window(places, x, start, start + WINDOW, 0);
	/* The newest values, which no window covers in full yet. */
	start = end > begin + WINDOW ? end - WINDOW : begin;
	if (!series_is_constant(x, start, end))
		search_window(places, x, start, end, 0);
}

struct trend {
	size_t first;	  /* first value of the window */
	double slope;	  /* per value */
	double low, high; /* 95 % interval of slope */
	double p;	  /* corrected for the number of windows; 1: no trend */
};

/* Sums for a line with one slope, and another mean in each part of a window. */
struct line_sums {
	double spread, both, squares; /* of the places, of both, of the values */
	double parts;
};

static void add_part(struct line_sums *sums, const double *x, size_t begin, size_t end)
{
	double n = (double)(end - begin), middle = (n - 1.0) / 2.0, mean, squares;

	sum_squares(x, begin, end, &mean, &squares);
	for (size_t i = begin; i < end; i++)
		sums->both += ((double)(i - begin) - middle) * (x[i] - mean);
	sums->squares += squares;
	sums->spread += n * (n * n - 1.0) / 12.0;
	sums->parts += 1.0;
}

/* The squares around the line with the least squares. */
static double line_squares(const double *x, size_t begin, size_t end)
{
	struct line_sums sums = {0};

	add_part(&sums, x, begin, end);
	return sums.squares - sums.both * sums.both / sums.spread;
}

/* Sets the range of places that the values do not rule out. */
static void set_place_range(struct step *step, const double *x, size_t begin, size_t end,
			    double floor)
{
	double n = (double)(end - begin), least, mean, parts[2];
	double offset = floor * floor * n;

	sum_squares(x, begin, step->place, &mean, &parts[0]);
	sum_squares(x, step->place, end, &mean, &parts[1]);
	least = parts[0] + parts[1] + offset;
	step->first = step->last = step->place;
	for (size_t place = begin + 1; place < end; place++) {
		sum_squares(x, begin, place, &mean, &parts[0]);
		sum_squares(x, place, end, &mean, &parts[1]);
		if (n * log((parts[0] + parts[1] + offset) / least) > PLACE_LIKELIHOOD)
			continue;
		step->first = place < step->first ? place : step->first;
		step->last = place > step->last ? place : step->last;
	}
}

static double half_interval(double error, double dof)
{
	return student_t_quantile(0.05, dof) * error;
}

/* Bonferroni: the largest of the differences at all places was chosen. */
static double correct_p(double p, double values)
{
	return fmin(1.0, p * fmin(values - 1.0, WINDOW));
}

/* Everything except the range of places. */
static void test_step(struct step *step, const double *x, size_t begin, size_t place, size_t end,
		      double floor)
{
	double m = (double)(place - begin), n = (double)(end - place), dof = m + n - 2.0;
	double squares[2], variance, line, noise = floor * floor * (m + n);

	*step = (struct step){.place = place, .first = place, .last = place, .p = 1.0};
	sum_squares(x, begin, place, &step->before, &squares[0]);
	sum_squares(x, place, end, &step->after, &squares[1]);
	step->low = -INFINITY;
	step->high = INFINITY;
	if (dof < 1.0)
		return;
	line = line_squares(x, begin, end);
	/* A step has one more parameter and a place: prefer the line in doubt. */
	step->is_line = (m + n) * log((line + noise) / (squares[0] + squares[1] + noise)) <
			2.0 * log(m + n);
	variance = fmax((squares[0] + squares[1]) / dof, floor * floor);
	step->error = sqrt(variance * (1.0 / m + 1.0 / n));
	if (!(step->error > 0.0))
		step->p = step->before == step->after ? 1.0 : 0.0;
	else
		step->p = student_t_p_value((step->after - step->before) / step->error, dof);
	step->p = correct_p(step->p, m + n);
	variance = half_interval(step->error, dof);
	step->low = step->after - step->before - variance;
	step->high = step->after - step->before + variance;
}

/* A step in the middle of a trend: both sides have the same slope. */
static void test_step_in_trend(struct step *step, const double *x, size_t begin, size_t place,
			       size_t end, double floor)
{
	double m = (double)(place - begin), n = (double)(end - place), dof = m + n - 3.0;
	struct line_sums sums = {0};
	double slope, jump, half;

	if (dof < 1.0)
		return;
	add_part(&sums, x, begin, place);
	add_part(&sums, x, place, end);
	slope = sums.both / sums.spread;
	half = (m + n) / 2.0;
	jump = step->after - step->before - slope * half;
	step->error = sqrt(fmax((sums.squares - slope * sums.both) / dof, floor * floor) *
			   (1.0 / m + 1.0 / n + half * half / sums.spread));
	step->before += slope * m / 2.0;
	step->after = step->before + jump;
	step->p = correct_p(student_t_p_value(jump / step->error, dof), m + n);
	half = half_interval(step->error, dof);
	step->low = jump - half;
	step->high = jump + half;
}

/* Tests a step over up to WINDOW values on each side. Narrows the range to them. */
static void choose_step(struct step *step, const double *x, size_t *begin, size_t place,
			size_t *end, double floor)
{
	*begin = place - *begin > WINDOW ? place - WINDOW : *begin;
	*end = *end - place > WINDOW ? place + WINDOW : *end;
	test_step(step, x, *begin, place, *end, floor);
	if (step->is_line)
		test_step_in_trend(step, x, *begin, place, *end, floor);
}

/*
 * Compares values[begin..place) with values[place..end). At most WINDOW values on each side count.
 * floor is the smallest standard deviation that values can have.
 */
static void step_measure(struct step *step, const double *x, size_t begin, size_t place, size_t end,
			 double floor)
{
	choose_step(step, x, &begin, place, &end, floor);
	set_place_range(step, x, begin, end, floor);
}

/* Overlapping windows can find one change at places that differ a little: keeps the better one. */
static void drop_close(struct places *places, const double *x, size_t begin, size_t end)
{
	for (size_t i = 0; i + 1 < places->count;) {
		size_t a = places->list[i], b = places->list[i + 1];
		size_t from = i ? places->list[i - 1] : begin;
		size_t to = i + 2 < places->count ? places->list[i + 2] : end;

		if (b - a >= SEGMENT_MIN) {
			i++;
			continue;
		}
		from = a - from > WINDOW ? a - WINDOW : from;
		to = to - b > WINDOW ? b + WINDOW : to;
		places_remove(places,
			      split_p(x, from, a, to) <= split_p(x, from, b, to) ? i + 1 : i);
	}
}

/*
 * Returns the factor by which choosing both ends of a short part between two changes raises the
 * p-value of the change at this index. This is in addition to the correction of step_measure().
 */
static double change_points_choices(const struct places *places, size_t index, size_t begin,
				    size_t end)
{
	size_t place = places->list[index];
	size_t left = place - (index ? places->list[index - 1] : begin);
	size_t right = (index + 1 < places->count ? places->list[index + 1] : end) - place;
	bool is_bounded = left < right ? index > 0 : index + 1 < places->count;

	return is_bounded ? fmax(1.0, WINDOW / (double)(left < right ? left : right)) : 1.0;
}

/*
 * Removes candidates between begin and end that are not significant. Keeps
 * others at least SEGMENT_MIN apart.
 */
static void change_points_prune(struct places *places, const double *x, size_t begin, size_t end,
				double floor)
{
	drop_close(places, x, begin, end);
	while (places->count) {
		size_t worst = 0;
		double largest = -1.0;

		for (size_t i = 0; i < places->count; i++) {
			size_t from = i ? places->list[i - 1] : begin;
			size_t to = i + 1 < places->count ? places->list[i + 1] : end;
			struct step step;
			double p;

			choose_step(&step, x, &from, places->list[i], &to, floor);
			p = step.p * change_points_choices(places, i, begin, end);
			if (p > largest) {
				largest = p;
				worst = i;
			}
		}
		if (largest <= STEP_ALPHA)
			return;
		places_remove(places, worst);
	}
}

/* The end of the part of a window that begins at a value. */
static size_t next_part(const struct places *cuts, size_t begin, size_t end)
{
	for (size_t c = 0; c < cuts->count; c++)
		if (cuts->list[c] > begin && cuts->list[c] < end)
			return cuts->list[c];
	return end;
}

/* Correlation of successive residuals, from 0 to 0.9. */
static double residual_correlation(const double *x, const struct places *cuts, size_t begin,
				   size_t end, double slope, double squares)
{
	double product = 0.0, last = 0.0;

	for (size_t from = begin, to; from < end; from = to) {
		double mean, unused;

		to = next_part(cuts, from, end);
		sum_squares(x, from, to, &mean, &unused);
		for (size_t i = from; i < to; i++) {
			double middle = (double)(to - from - 1) / 2.0;
			double rest = x[i] - mean - slope * ((double)(i - from) - middle);

			product += i > begin ? rest * last : 0.0;
			last = rest;
		}
	}
	return squares > 0.0 ? fmin(fmax(product / squares, 0.0), 0.9) : 0.0;
}

/*
 * Correlation of successive residuals makes a trend look too certain. The effective number of
 * values corrects that (Santer et al. 2000).
 */
static void test_trend(struct trend *trend, const double *x, const struct places *cuts,
		       size_t begin, size_t end, double floor)
{
	struct line_sums sums = {0};
	double n = (double)(end - begin), slope, squares, share, dof, error, half;

	for (size_t from = begin, to; from < end; from = to) {
		to = next_part(cuts, from, end);
		add_part(&sums, x, from, to);
	}
	slope = sums.both / sums.spread;
	squares = fmax(sums.squares - slope * sums.both, 0.0);
	share = residual_correlation(x, cuts, begin, end, slope, squares);
	dof = fmax(n * (1.0 - share) / (1.0 + share) - 1.0 - sums.parts, 1.0);
	error = sqrt(fmax(squares / dof, floor * floor) / sums.spread);
	half = half_interval(error, dof);
	*trend = (struct trend){.first = begin,
				.slope = slope,
				.low = slope - half,
				.high = slope + half,
				.p = 1.0};
	if (error > 0.0)
		trend->p = student_t_p_value(slope / error, dof);
}

/*
 * Finds the most significant trend that ends at the last value. The mean may change at cuts, where
 * other rows have steps.
 */
static void trend_measure(struct trend *trend, const double *x, const struct places *cuts,
			  size_t begin, size_t end, double floor)
{
	size_t length = end - begin, windows = 0;

	*trend = (struct trend){.first = begin, .p = 1.0};
	if (length < DRIFT_MIN)
		return;
	for (size_t window = length < DRIFT_WINDOW ? length : DRIFT_WINDOW; window <= length;
	     window *= 2) {
		struct trend next;

		test_trend(&next, x, cuts, end - window, end, floor);
		windows++;
		if (next.p < trend->p)
			*trend = next;
	}
	trend->p = fmin(1.0, trend->p * (double)windows);
}

#define NOISE_MIN                                                                                  \
	1e-4 /* relative standard deviation that values have at least, as in xtrace diff */
#define SHARE_MIN 5e-4 /* of the GPU time, as in xtrace diff */

/*
 * Adds the values of a row, unless there are too few of them, or all counts are the same. A missing
 * row has the count 0. Its value is unknown.
 */
static void add_track(struct detection *d, const struct history *h,
		      const struct history_group *group, size_t row, enum metric metric)
{
	struct track track = {
		.row = row,
		.metric = metric,
		.is_log = metric == METRIC_VALUE,
		.values = xt_calloc(group->count + 1, sizeof(*track.values)),
		.places = xt_calloc(group->count + 1, sizeof(*track.places)),
	};
	double sum = 0.0, largest = 0.0;
	bool varies = false;

	for (size_t i = 0; i < group->count; i++) {
		struct history_value at = group_value(h, group, row, i);
		double value = metric == METRIC_VALUE ? at.value : isnan(at.value) ? 0.0 : at.count;

		if (metric == METRIC_VALUE && isnan(value))
			continue;
		track.places[track.count] = i;
		track.values[track.count++] = value;
		track.is_log &= value > 0.0;
		varies |= value != track.values[0];
		sum += value;
		largest = fmax(largest, fabs(value));
	}
	if (track.count < 2 || (metric == METRIC_COUNT && !varies)) {
		free_all(track.values, track.places);
		return;
	}
	track.cost = sum / (double)track.count;
	track.floor = track.is_log ? NOISE_MIN : NOISE_MIN * largest;
	for (size_t i = 0; track.is_log && i < track.count; i++)
		track.values[i] = log(track.values[i]);
	xt_append(d->tracks, d->track_count, d->track_capacity, track);
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

static void tracks_make(struct detection *d, const struct history *h,
			const struct history_group *group)
{
	for (size_t r = 0; r < h->rows.count; r++) {
		if (group->is_new_name[r])
			continue;
		add_track(d, h, group, r, METRIC_VALUE);
		/* The numbers of items of totals are totals themselves. */
		if (h->rows.list[r].level != LEVEL_TOTAL)
			add_track(d, h, group, r, METRIC_COUNT);
	}
	select_tested(d, h);
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

/* Searches a track between breaks. Sets its changes to those that would pass without other rows. */
static void search_track(struct track *track, const struct history_group *group)
{
	for (size_t begin = 0, end, unused; begin < track->count; begin = end) {
		struct places places = {0};

		/* Ends at the next break: the changes that are known are before this part. */
		track_part(track, group, begin, &unused, &end);
		change_points_search(&places, track->values, begin, end);
		change_points_prune(&places, track->values, begin, end, track->floor);
		for (size_t p = 0; p < places.count; p++)
			places_add(&track->changes, places.list[p]);
		free(places.list);
	}
}

/* A difference of values relative to the one before. */
static double ratio_of(const struct track *track, double before, double difference)
{
	return track->is_log ? expm1(difference) : difference / fabs(before);
}

/* Sets what the step or the line of a track means in its unit. */
static void describe(struct history_finding *finding, const struct track *track, double before,
		     double after, double low, double high)
{
	finding->before = track_value(track, before);
	finding->after = track_value(track, after);
	finding->ratio = ratio_of(track, before, after - before);
	finding->low = ratio_of(track, before, low);
	finding->high = ratio_of(track, before, high);
}

static void add_step(struct detection *d, size_t track_number, const struct step *step,
		     bool is_at_break)
{
	const struct track *track = &d->tracks[track_number];
	struct history_finding finding = {
		.track = track_number,
		.is_at_break = is_at_break,
		.place = track->places[step->place],
		/* Points that lack the row are inside the range. */
		.first = track->places[step->first - 1] + 1,
		.last = track->places[step->last],
		.p = step->p,
	};

	describe(&finding, track, step->before, step->after, step->low, step->high);
	xt_append(d->findings, d->finding_count, d->finding_capacity, finding);
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
	struct history_finding finding = {.track = track_number, .is_drift = true};
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
	finding.per_run = ratio_of(track, mean, trend.slope);
	describe(&finding, track, mean - middle * trend.slope, mean + middle * trend.slope,
		 trend.low * length, trend.high * length);
	xt_append(d->findings, d->finding_count, d->finding_capacity, finding);
}

/* Findings that are tested together have the same: level and metric, kind, and stretch of time. */
static uint64_t family_of(const struct detection *d, const struct history *h,
			  const struct history_finding *finding)
{
	const struct track *track = &d->tracks[finding->track];
	uint64_t block = finding->is_drift	? 0
			 : finding->is_at_break ? finding->place
						: finding->place / WINDOW_STEP;

	block = (block * 2 + finding->is_drift) * 2 + finding->is_at_break;
	return (block * METRICS + track->metric) * LEVELS + h->rows.list[track->row].level;
}

/*
 * Adjusts the p-values of one family. Rows without a finding have the p-value 1. Half of the error
 * rate is shared equally and half by cost, as in xtrace diff.
 */
static void adjust_family(struct detection *d, const struct history *h, uint64_t family)
{
	double *p = xt_calloc(d->track_count + d->finding_count + 1, sizeof(*p));
	double *weights = xt_calloc(d->track_count + d->finding_count + 1, sizeof(*weights));
	size_t *members = xt_calloc(d->finding_count + 1, sizeof(*members));
	size_t count = 0, member_count = 0;
	double costs = 0.0, sum = 0.0;

	for (size_t f = 0; f < d->finding_count; f++) {
		if (family_of(d, h, &d->findings[f]) != family)
			continue;
		members[member_count++] = f;
		p[count] = d->findings[f].p;
		weights[count] = fabs(d->tracks[d->findings[f].track].cost);
		costs += weights[count++];
	}
	for (size_t t = 0; t < d->track_count; t++) {
		if (!d->tracks[t].is_tested || d->tracks[t].metric != family / LEVELS % METRICS ||
		    h->rows.list[d->tracks[t].row].level != family % LEVELS)
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

/* Adjusts all families. An adjusted p-value does not change the family of a finding. */
static void adjust(struct detection *d, const struct history *h)
{
	uint64_t *families = xt_calloc(d->finding_count + 1, sizeof(*families));
	size_t first;

	for (size_t f = 0; f < d->finding_count; f++) {
		families[f] = family_of(d, h, &d->findings[f]);
		for (first = 0; families[first] != families[f]; first++)
			;
		if (first == f)
			adjust_family(d, h, families[f]);
	}
	free(families);
}

static double alpha_of(const struct detection *d, const struct history *h,
		       const struct history_finding *finding)
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
		const struct history_finding *finding = &d->findings[f];
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
		xt_append(d->findings, d->finding_count, d->finding_capacity, part.findings[f]);
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
