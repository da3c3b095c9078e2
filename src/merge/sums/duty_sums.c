/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/duty_sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "log/base/grow.h"

/* The others are no sums over time, or come from the CPU sampler, which has no duty cycle. */
static const bool is_scaled[WEIGHTS] = {
	[WEIGHT_GPU_TIME] = true,      [WEIGHT_COUNT] = true,	 [WEIGHT_CPU_WAIT] = true,
	[WEIGHT_GPU_EXCLUSIVE] = true, [WEIGHT_GPU_IDLE] = true, [WEIGHT_ALLOC_BYTES] = true,
};

/* The 97.5th percentile of Student's distribution, by degrees of freedom. */
static const double student[DUTY_GROUPS] = {0,	   12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
					    2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
					    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
					    2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.040};

/* Window w follows pause w - 1; window 0 is before the first pause. */
static size_t window_at(const struct pauses *pauses, uint64_t time_ns)
{
	size_t low = 0, high = pauses->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pauses->rows[middle].until_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_in_window(const struct pauses *pauses, size_t window, uint64_t time_ns)
{
	return (!window || pauses->rows[window - 1].until_ns <= time_ns) &&
	       (window == pauses->count || time_ns < pauses->rows[window].until_ns);
}

int duty_sums_add(struct duty_sums *sums, uint32_t place, uint64_t time_ns, uint64_t gpu_ns)
{
	struct duty_residuals *row;

	if (!is_in_window(sums->pauses, sums->window, time_ns))
		sums->window = window_at(sums->pauses, time_ns);
	if (grow(&sums->rows, &sums->capacity, (size_t)place + 1, sizeof(*sums->rows)) < 0)
		return -ENOMEM;
	row = &sums->rows[place];
	row->of[DUTY_GPU_TIME][sums->window % DUTY_GROUPS] += (float)gpu_ns;
	row->of[DUTY_COUNT][sums->window % DUTY_GROUPS]++;
	return 0;
}

/* The recorded time of a window within the span. */
static uint64_t window_ns(const struct duty_span *span, size_t window)
{
	const struct pauses *pauses = span->pauses;
	uint64_t from_ns = window ? pauses->rows[window - 1].until_ns : 0;
	uint64_t until_ns = window < pauses->count ? pauses->rows[window].from_ns : UINT64_MAX;

	from_ns = from_ns > span->from_ns ? from_ns : span->from_ns;
	until_ns = until_ns < span->until_ns ? until_ns : span->until_ns;
	return until_ns > from_ns ? until_ns - from_ns : 0;
}

void duty_sums_finish(struct duty_sums *sums, const struct duty_span *span, struct duty_run *run)
{
	uint64_t all_ns = span->until_ns > span->from_ns ? span->until_ns - span->from_ns : 0;
	uint64_t covered_ns = all_ns - pauses_between_ns(span->away, span->from_ns, span->until_ns);
	uint64_t recorded_ns = 0;
	unsigned groups = 0;

	for (size_t w = 0; w <= span->pauses->count; w++) {
		uint64_t ns = window_ns(span, w);

		sums->shares[w % DUTY_GROUPS] += (double)ns;
		recorded_ns += ns;
		run->window_count += ns != 0;
	}
	run->log_count++;
	run->covered_ns += covered_ns;
	run->recorded_ns += recorded_ns;
	sums->factor = 1;
	if (!recorded_ns) {
		run->log_unrecorded_count++;
		run->unrecorded_ns += covered_ns;
		return;
	}
	for (int g = 0; g < DUTY_GROUPS; g++) {
		groups += sums->shares[g] > 0;
		sums->shares[g] /= (double)recorded_ns;
	}
	if (covered_ns > recorded_ns)
		sums->factor = (double)covered_ns / (double)recorded_ns;
	/* A part of the whole was observed, so only the rest of it is uncertain. */
	sums->correction = sums->factor * sqrt(1 - 1 / sums->factor) *
			   (groups > 1 ? sqrt((double)groups / (groups - 1)) : 1);
	run->freedom += groups - 1;
}

void duty_sums_scale(const struct duty_sums *sums, uint64_t weights[WEIGHTS])
{
	for (int w = 0; w < WEIGHTS; w++) {
		double scaled = (double)weights[w] * sums->factor + 0.5;

		if (is_scaled[w] && sums->factor > 1)
			weights[w] = scaled < (double)INT64_MAX ? (uint64_t)scaled : INT64_MAX;
	}
}

/* With one group, its whole sum counts as error: nothing tells how much windows differ. */
static void spread(const struct duty_sums *sums, const float *from, float *to)
{
	double sum = 0;
	bool is_single = false;

	for (int g = 0; g < DUTY_GROUPS; g++) {
		sum += (double)from[g];
		is_single |= sums->shares[g] >= 1;
	}
	for (int g = 0; g < DUTY_GROUPS; g++)
		to[g] += (float)(sums->correction *
				 ((double)from[g] - (is_single ? 0 : sum * sums->shares[g])));
}

int duty_sums_add_residuals(const struct duty_sums *sums, uint32_t place, struct duty_run *run,
			    uint32_t node)
{
	if (place >= sums->capacity)
		return 0;
	if (grow(&run->rows, &run->capacity, (size_t)node + 1, sizeof(*run->rows)) < 0)
		return -ENOMEM;
	for (int w = 0; w < DUTY_WEIGHTS; w++)
		spread(sums, sums->rows[place].of[w], run->rows[node].of[w]);
	return 0;
}

void duty_sums_free(struct duty_sums *sums)
{
	free(sums->rows);
	*sums = (struct duty_sums){0};
}

void duty_run_free(struct duty_run *run)
{
	free(run->rows);
	*run = (struct duty_run){0};
}

static double half_width(const struct duty_run *run, const float *residuals)
{
	unsigned freedom = run->freedom < DUTY_GROUPS - 1 ? run->freedom : DUTY_GROUPS - 1;
	double variance = 0;

	for (int g = 0; g < DUTY_GROUPS; g++)
		variance += (double)residuals[g] * (double)residuals[g];
	return student[freedom ? freedom : 1] * sqrt(variance);
}

static void add_row(float (*sums)[DUTY_GROUPS], size_t to, const float *row)
{
	for (int g = 0; g < DUTY_GROUPS; g++)
		sums[to][g] += row[g];
}

int duty_run_errors(const struct duty_run *run, const struct paths *paths, enum weight weight,
		    enum duty_table table, double **halves_out)
{
	enum duty_weight column = weight == WEIGHT_GPU_TIME ? DUTY_GPU_TIME : DUTY_COUNT;
	size_t count = table == DUTY_BY_NAME ? paths->names.count : paths->node_count;
	float(*sums)[DUTY_GROUPS];

	*halves_out = NULL;
	if (!duty_run_is_scaled(run) || (weight != WEIGHT_GPU_TIME && weight != WEIGHT_COUNT))
		return 0;
	sums = calloc(count + 1, sizeof(*sums));
	*halves_out = calloc(count + 1, sizeof(**halves_out));
	if (!sums || !*halves_out) {
		free(sums);
		free(*halves_out);
		*halves_out = NULL;
		return -ENOMEM;
	}
	/* Parents precede children, so a backward pass adds up complete subtrees. */
	for (uint32_t n = paths->node_count; n-- > 0;) {
		size_t to = table == DUTY_BY_NAME ? paths->nodes[n].name : n;

		if (n < run->capacity)
			add_row(sums, to, run->rows[n].of[column]);
		if (table == DUTY_BY_FRAME && n != PATH_ROOT)
			add_row(sums, paths->nodes[n].parent, sums[n]);
	}
	for (size_t i = 0; i < count; i++)
		(*halves_out)[i] = half_width(run, sums[i]);
	free(sums);
	return 0;
}
