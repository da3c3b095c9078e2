/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subjects of a run profile, and their means and standard errors from sums by batch.
 * docs/internals/DIFF_METHOD.md describes the method.
 */
#include <math.h>
#include <stdlib.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/profile/profile.h"

#define BATCHES_MIN	4    /* minimum number of batches for a variance */
#define FAR_BATCHES_MIN 8    /* minimum number of batches to look for outliers */
#define FAR_OUT		5.0  /* outlier limit in standard deviations */
#define PATHS_MIN	10   /* minimum number of paths for a common factor */
#define SHARE_MIN	1e-3 /* minimum share of GPU time for such a path */
#define SHARE_MAX	0.1  /* maximum weight, so that no single path decides */

uint32_t subjects_index(struct subjects *s, enum profile_level level, uint32_t id)
{
	const uint32_t key[] = {level, id};
	bool is_new;
	uint32_t place = xt_intern(&s->ids, key, sizeof(key), &is_new) - 1;

	if (is_new)
		list_append(*s, (struct subject){.level = level, .id = id});
	return place;
}

void subjects_free(struct subjects *s)
{
	free(s->list);
	interner_free(&s->ids);
	*s = (struct subjects){0};
}

void subject_add(struct subject *subject, int batch, double share, double value, double count)
{
	subject->whole_value += value;
	subject->whole_count += count;
	if (batch < 0)
		return;
	subject->values[batch] += value * share;
	subject->counts[batch] += count * share;
}

/*
 * Variance of the mean of an autocorrelated sequence (Geyer's initial monotone sequence estimator).
 * In a stationary sequence, sums of adjacent autocovariances are positive and decreasing. Sum them
 * up to the first that is not positive.
 */
static double variance_of_mean(const double *x, uint32_t count)
{
	double mean = 0.0, covariance[PROFILE_BATCHES] = {0}, sum, last = INFINITY, plain;

	for (uint32_t i = 0; i < count; i++)
		mean += x[i] / count;
	for (uint32_t lag = 0; lag < count; lag++)
		for (uint32_t i = 0; i + lag < count; i++)
			covariance[lag] += (x[i] - mean) * (x[i + lag] - mean) / count;
	sum = -covariance[0];
	for (uint32_t lag = 0; lag + 1 < count; lag += 2) {
		double pair = covariance[lag] + covariance[lag + 1];

		if (pair <= 0.0)
			break;
		last = pair < last ? pair : last;
		sum += 2.0 * last;
	}
	/* Never less than for independent values. */
	plain = covariance[0] * count / (count - 1);
	return (sum > plain ? sum : plain) / count;
}

/* factors: NULL if nothing is common to all paths. */
static struct profile_stat stat_of(const double *x, uint32_t count, const double *factors)
{
	struct profile_stat stat = {0.0, 0.0, NAN, NAN};
	double rest[PROFILE_BATCHES];

	for (uint32_t b = 0; b < count; b++)
		stat.mean += x[b] / count;
	stat.typical = stat.mean;
	if (count < BATCHES_MIN)
		return stat;
	stat.error = sqrt(variance_of_mean(x, count));
	for (uint32_t b = 0; b < count; b++)
		rest[b] = factors ? x[b] / factors[b] : x[b];
	stat.residual = sqrt(variance_of_mean(rest, count));
	return stat;
}

/*
 * Clamp outliers: batches in which items took far longer or shorter than in the others, for example
 * because another program disturbed the machine. Item counts stay unchanged.
 */
static void pull_in(const struct subject *s, uint32_t batch_count, double *values)
{
	double list[PROFILE_BATCHES], middle, spread;
	uint32_t used = 0;

	for (uint32_t b = 0; b < batch_count; b++) {
		values[b] = s->values[b];
		if (s->counts[b] > 0.0)
			list[used++] = s->values[b] / s->counts[b];
	}
	if (used < FAR_BATCHES_MIN)
		return;
	middle = median(list, used);
	for (uint32_t i = 0; i < used; i++)
		list[i] = fabs(list[i] - middle);
	/*
	 * 1.4826 converts the median deviation of a normal distribution to its standard deviation.
	 */
	spread = FAR_OUT * 1.4826 * median(list, used);
	for (uint32_t b = 0; b < batch_count && spread > 0.0; b++)
		if (s->counts[b] > 0.0)
			values[b] =
				s->counts[b] * fmin(fmax(values[b] / s->counts[b], middle - spread),
						    middle + spread);
}

struct profile_stats profile_stats(const struct subject *s, uint32_t batch_count,
				   const double *factors)
{
	struct profile_stats stats = {.each = {NAN, NAN, NAN, NAN}};
	double ratio, mean = 0.0, values[PROFILE_BATCHES], linear[PROFILE_BATCHES];

	pull_in(s, batch_count, values);
	for (uint32_t b = 0; b < batch_count; b++)
		mean += s->values[b] / batch_count;
	stats.value = stat_of(values, batch_count, factors);
	stats.value.mean = mean;
	stats.count = stat_of(s->counts, batch_count, NULL);
	if (!(stats.count.mean > 0.0))
		return stats;
	/* Variance of the ratio of two means by linearisation (delta method). */
	ratio = stats.value.typical / stats.count.mean;
	for (uint32_t b = 0; b < batch_count; b++)
		linear[b] = ratio + (values[b] - ratio * s->counts[b]) / stats.count.mean;
	stats.each = stat_of(linear, batch_count, factors);
	stats.each.mean = mean / stats.count.mean;
	stats.each.typical = ratio;
	return stats;
}

/*
 * List the time per item of each path in a batch relative to its mean. Returns the number of paths.
 */
static size_t list_ratios(const struct subjects *subjects, uint32_t batch_count, uint32_t batch,
			  double all, struct weighted_value *list)
{
	size_t used = 0;

	for (size_t i = 0; i < subjects->count; i++) {
		const struct subject *s = &subjects->list[i];
		double value = 0.0, count = 0.0;

		if (s->level != PROFILE_PATH || !(s->counts[batch] > 0.0))
			continue;
		for (uint32_t b = 0; b < batch_count; b++) {
			value += s->values[b];
			count += s->counts[b];
		}
		if (value < all * SHARE_MIN)
			continue;
		list[used++] =
			(struct weighted_value){s->values[batch] / s->counts[batch] * count / value,
						value < all * SHARE_MAX ? value : all * SHARE_MAX};
	}
	return used;
}

void profile_factors(const struct subjects *subjects, uint32_t batch_count, double *factors)
{
	struct weighted_value *list = xt_calloc(subjects->count + 1, sizeof(*list));
	double all = 0.0;

	for (size_t i = 0; i < subjects->count; i++)
		for (uint32_t b = 0; b < batch_count; b++)
			if (subjects->list[i].level == PROFILE_PATH)
				all += subjects->list[i].values[b];
	for (uint32_t b = 0; b < batch_count; b++) {
		size_t count = list_ratios(subjects, batch_count, b, all, list);

		factors[b] = count < PATHS_MIN ? 1.0 : weighted_median(list, count);
		if (!(factors[b] > 0.0))
			factors[b] = 1.0;
	}
	free(list);
}
