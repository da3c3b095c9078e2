/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search by energy statistics, tests by Student's t.
 */
#include "diff/history/change_points.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "diff/stats/statistics.h"

#define HIDDEN_DEPTH	 1    /* insignificant splits whose parts are searched, one in the other */
#define PLACE_LIKELIHOOD 7.35 /* 95 % quantile of the likelihood ratio of a place (Hansen 2000) */

void places_add(struct places *places, size_t place)
{
	size_t at = places->count;

	while (at > 0 && places->list[at - 1] > place)
		at--;
	if (at > 0 && places->list[at - 1] == place)
		return;
	xt_grow(&places->list, &places->capacity, places->count + 1, sizeof(*places->list));
	memmove(&places->list[at + 1], &places->list[at],
		(places->count - at) * sizeof(*places->list));
	places->list[at] = place;
	places->count++;
}

void places_remove(struct places *places, size_t index)
{
	places->count--;
	memmove(&places->list[index], &places->list[index + 1],
		(places->count - index) * sizeof(*places->list));
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

double series_deviation(const double *x, size_t begin, size_t end)
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

/* Constant rows, such as most counts, have no candidates. */
static bool is_constant(const double *x, size_t begin, size_t end)
{
	for (size_t i = begin + 1; i < end; i++)
		if (x[i] != x[begin])
			return false;
	return true;
}

void change_points_search(struct places *places, const double *x, size_t begin, size_t end)
{
	size_t start = begin;

	for (; start + WINDOW <= end; start += WINDOW_STEP)
		if (!is_constant(x, start, start + WINDOW))
			search_window(places, x, start, start + WINDOW, 0);
	/* The newest values, which no window covers in full yet. */
	start = end > begin + WINDOW ? end - WINDOW : begin;
	if (!is_constant(x, start, end))
		search_window(places, x, start, end, 0);
}

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

void step_measure(struct step *step, const double *x, size_t begin, size_t place, size_t end,
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

double change_points_choices(const struct places *places, size_t index, size_t begin, size_t end)
{
	size_t place = places->list[index];
	size_t left = place - (index ? places->list[index - 1] : begin);
	size_t right = (index + 1 < places->count ? places->list[index + 1] : end) - place;
	bool is_bounded = left < right ? index > 0 : index + 1 < places->count;

	return is_bounded ? fmax(1.0, WINDOW / (double)(left < right ? left : right)) : 1.0;
}

void change_points_prune(struct places *places, const double *x, size_t begin, size_t end,
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

void trend_measure(struct trend *trend, const double *x, const struct places *cuts, size_t begin,
		   size_t end, double floor)
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
