/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series and continued fractions: Abramowitz & Stegun, 6.3, 6.4, 26.5, 26.7. Moderated variances
 * after Smyth (2004), with a prior that depends on the noise within runs.
 */
#include "diff/stats/statistics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"

#define INTERVAL_STEPS 30  /* bisections; bounds are exact to 1e-9 */
#define NORMAL_DOF     1e7 /* above, use the normal distribution */

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), f;

	d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
	f = d;
	for (int m = 1; m < 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0));
		double step = 1.0;

		for (int half = 0; half < 2; half++) {
			double term = half ? odd : even;

			d = 1.0 + term * d;
			c = 1.0 + term / c;
			d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
			c = fabs(c) < 1e-300 ? 1e-300 : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1.0) < 1e-14)
			break;
	}
	return f;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0.0 || x >= 1.0)
		return x >= 1.0;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1.0) / (a + b + 2.0) ? front * beta_fraction(a, b, x) / a
					     : 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

double student_t_p_value(double t, double dof)
{
	if (isnan(t) || !(dof > 0.0))
		return NAN;
	if (isinf(t))
		return 0.0;
	if (dof > NORMAL_DOF)
		return erfc(fabs(t) / M_SQRT2);
	return incomplete_beta(dof / 2.0, 0.5, dof / (dof + t * t));
}

double student_t_quantile(double p, double dof)
{
	double low = 0.0, high = 1.0;

	if (!(p > 0.0 && p <= 1.0) || !(dof > 0.0))
		return NAN;
	while (student_t_p_value(high, dof) > p && high < 1e150)
		high *= 2.0;
	for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
		double middle = (low + high) / 2.0;

		if (student_t_p_value(middle, dof) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

double digamma(double x)
{
	double sum = 0.0, r;

	for (; x < 10.0; x += 1.0)
		sum -= 1.0 / x;
	r = 1.0 / (x * x);
	return sum + log(x) - 0.5 / x -
	       r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240))));
}

double trigamma(double x)
{
	double sum = 0.0, r;

	for (; x < 10.0; x += 1.0)
		sum += 1.0 / (x * x);
	r = 1.0 / (x * x);
	return sum + 1.0 / x + r / 2.0 + r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42)));
}

double trigamma_inverse(double y)
{
	double low = 1e-8, high = 1e8;

	for (int i = 0; i < 200; i++) {
		double middle = sqrt(low * high);

		if (trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* Median / mean of a chi-squared distribution (Wilson-Hilferty approximation). */
static double chi_squared_median_ratio(double dof)
{
	double cube = 1.0 - 2.0 / (9.0 * dof);

	return cube * cube * cube;
}

size_t permutation_count(size_t n, size_t k)
{
	double ways = 1.0;

	for (size_t i = 0; i < k; i++) {
		ways = ways * (double)(n - i) / (double)(i + 1);
		if (ways >= PERMUTATIONS_MAX)
			return PERMUTATIONS_MAX;
	}
	return (size_t)(ways + 0.5);
}

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The next k-combination of n in lexicographic order. Returns false after the last. */
static bool next_choice(size_t *choice, size_t k, size_t n)
{
	size_t i = k;

	while (i > 0 && choice[i - 1] == n - k + i - 1)
		i--;
	if (!i)
		return false;
	choice[i - 1]++;
	for (; i < k; i++)
		choice[i] = choice[i - 1] + 1;
	return true;
}

static void draw_choice(size_t *choice, size_t k, size_t n, uint64_t *state)
{
	size_t taken = 0;

	for (size_t i = 0; i < n && taken < k; i++)
		if (draw(state) % (n - i) < k - taken)
			choice[taken++] = i;
}

/* All assignments of the values to the sides, or a sample drawn with a fixed seed. */
struct permutations {
	double *sums; /* sum of the first side minus its expectation */
	double *news; /* values of the second side in it, minus the expectation */
	size_t count; /* number of assignments; the first is the observed one */
};

static void list_permutations(struct permutations *d, const double *values, size_t first_count,
			      size_t count)
{
	size_t ways = permutation_count(count, first_count);
	size_t *choice = xt_calloc(count + 1, sizeof(*choice));
	double share = (double)first_count / (double)count, sum = 0.0;
	uint64_t state = 1;

	*d = (struct permutations){.sums = xt_calloc(ways + 1, sizeof(*d->sums)),
				   .news = xt_calloc(ways + 1, sizeof(*d->news))};
	for (size_t i = 0; i < count; i++) {
		sum += values[i];
		choice[i] = i;
	}
	do {
		double part = 0.0, news = 0.0;

		for (size_t i = 0; i < first_count; i++) {
			part += values[choice[i]];
			news += choice[i] >= first_count;
		}
		d->sums[d->count] = part - share * sum;
		d->news[d->count++] = news - share * (double)(count - first_count);
		if (ways == PERMUTATIONS_MAX)
			draw_choice(choice, first_count, count, &state);
	} while (ways == PERMUTATIONS_MAX ? d->count < ways
					  : next_choice(choice, first_count, count));
	free(choice);
}

static void permutations_free(struct permutations *d)
{
	free_all(d->sums, d->news);
}

/*
 * The p-value after subtracting `by` from the second side. The sum of the first side orders the
 * assignments as the difference of the means does.
 */
static double shifted_p(const struct permutations *d, double by)
{
	double seen = fabs(d->sums[0] - by * d->news[0]) * (1.0 - 1e-9);
	size_t as_large = 0;

	for (size_t i = 0; i < d->count; i++)
		as_large += fabs(d->sums[i] - by * d->news[i]) >= seen;
	return (double)as_large / (double)d->count;
}

double permutation_p(const double *values, size_t first_count, size_t count)
{
	struct permutations d = {0};
	double p = 1.0;

	if (first_count && first_count < count) {
		list_permutations(&d, values, first_count, count);
		p = shifted_p(&d, 0.0);
	}
	permutations_free(&d);
	return p;
}

void permutation_interval(const double *values, size_t first_count, size_t count, double alpha,
			  double *low_out, double *high_out)
{
	double least = INFINITY, most = -INFINITY, sums[2] = {0}, middle;
	double *bounds[] = {low_out, high_out};
	struct permutations d = {0};

	*low_out = -INFINITY;
	*high_out = INFINITY;
	for (size_t i = 0; i < count; i++) {
		sums[i >= first_count] += values[i];
		least = fmin(least, values[i]);
		most = fmax(most, values[i]);
	}
	if (!first_count || first_count >= count)
		goto out;
	list_permutations(&d, values, first_count, count);
	middle = sums[1] / (double)(count - first_count) - sums[0] / (double)first_count;
	for (int side = 0; side < 2; side++) {
		/* Shifted this far, the sides cannot overlap. */
		double out = middle + (side ? 4.0 : -4.0) * (most - least), in = middle;

		for (int i = 0; i < INTERVAL_STEPS; i++) {
			double half = (in + out) / 2.0;

			if (shifted_p(&d, half) > alpha)
				in = half;
			else
				out = half;
		}
		*bounds[side] = out;
	}
out:
	permutations_free(&d);
}

struct place {
	double order; /* p / weight */
	size_t index;
};

COMPARE_BY(compare_places, struct place, UP(order) UP(index))

void holm_adjust(double *p, const double *weights, size_t count)
{
	struct place *places = xt_calloc(count + 1, sizeof(*places));
	double largest = 0.0, left = 1.0;

	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){p[i] / weights[i], i};
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++) {
		double adjusted = places[i].order * left;

		largest = adjusted > largest ? adjusted : largest;
		p[places[i].index] = largest < 1.0 ? largest : 1.0;
		left -= weights[places[i].index];
		left = left > 0.0 ? left : 0.0;
	}
	free(places);
}

#define SAMPLES_MIN   8	    /* with fewer rows, nothing is learned */
#define PRIOR_DOF_MAX 40.0  /* rows are never assumed to be equally noisy */
#define SPREAD_ERRORS 1.0   /* standard errors added to the estimated spread */
#define VARIANCE_MIN  1e-18 /* at most rounding */

static double known(double value)
{
	return isnan(value) ? 0.0 : value;
}

/* The median variance between runs in excess of the variance within runs. */
static double find_between(const struct noise_sample *samples, size_t count, double *room)
{
	size_t used = 0;
	double middle;

	for (size_t i = 0; i < count; i++)
		if (samples[i].dof > 0.0 && samples[i].variance > VARIANCE_MIN)
			room[used++] =
				samples[i].variance / chi_squared_median_ratio(samples[i].dof) -
				known(samples[i].within);
	middle = median(room, used);
	return middle > 0.0 ? middle : 0.0;
}

/*
 * Fourth central moment of the logarithm of a variance. The fourth cumulant of a log-gamma
 * distribution is the third derivative of digamma(), computed here by finite differences.
 */
static double fourth_moment(double half)
{
	double step = half / 64.0, second = trigamma(half);
	double bend =
		(trigamma(half + step) - 2.0 * second + trigamma(half - step)) / (step * step);

	return bend + 3.0 * second * second;
}

void noise_learn(struct noise *noise, const struct noise_sample *samples, size_t count)
{
	double *room = xt_calloc(count + 1, sizeof(*room)), sum = 0.0, squares = 0.0,
	       expected = 0.0;
	double spread, fourths = 0.0;
	size_t used = 0;

	*noise = (struct noise){.scale = 1.0};
	noise->between = find_between(samples, count, room);
	for (size_t i = 0; i < count; i++) {
		double prior = known(samples[i].within) + noise->between, half, z;

		if (!(samples[i].dof > 0.0))
			continue;
		if (!(samples[i].variance > VARIANCE_MIN) || !(prior > 0.0))
			continue;
		half = samples[i].dof / 2.0;
		/* Remove the expected value of the logarithm of a variance. */
		z = log(samples[i].variance / prior) - digamma(half) + log(half);
		sum += z;
		squares += z * z;
		expected += trigamma(half);
		fourths += fourth_moment(half);
		used++;
	}
	free(room);
	if (used < SAMPLES_MIN)
		return;
	noise->is_known = true;
	sum /= (double)used;
	expected /= (double)used;
	spread =
		(squares / (double)used - sum * sum) * (double)used / (double)(used - 1) - expected;
	/* Few runs show little of how much rows differ in noise. Assume an upper estimate. */
	spread =
		fmax(spread, 0.0) +
		SPREAD_ERRORS * sqrt((fourths / (double)used - expected * expected) / (double)used);
	if (spread > 0.0)
		noise->prior_dof = 2.0 * trigamma_inverse(spread);
	if (!(spread > 0.0) || noise->prior_dof > PRIOR_DOF_MAX)
		noise->prior_dof = PRIOR_DOF_MAX;
	noise->scale = exp(sum + digamma(noise->prior_dof / 2.0) - log(noise->prior_dof / 2.0));
}

double noise_variance(const struct noise *noise, const struct noise_sample *sample, double *dof_out)
{
	double prior = noise->scale * (known(sample->within) + noise->between), variance;

	*dof_out = sample->dof;
	variance = sample->variance;
	if (noise->is_known) {
		*dof_out += noise->prior_dof;
		variance = (noise->prior_dof * prior + sample->dof * sample->variance) / *dof_out;
	}
	/* Runs agree better than the variation of their iterations only by chance. */
	return variance > known(sample->within) ? variance : known(sample->within);
}
