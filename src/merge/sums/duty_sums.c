/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/duty_sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "log/base/grow.h"

/* The 97.5th percentile of Student's distribution, by degrees of freedom. */
static const double student[DUTY_GROUPS] = {0,	   12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
					    2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
					    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
					    2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.040};

/* Window w follows pause w - 1; window 0 is before the first pause. */
static bool is_in_window(const struct pauses *pauses, size_t window, uint64_t time_ns)
{
	return (!window || pauses->rows[window - 1].until_ns <= time_ns) &&
	       (window == pauses->count || time_ns < pauses->rows[window].until_ns);
}

int duty_sums_add(struct duty_sums *sums, uint32_t place, uint64_t time_ns, uint64_t gpu_ns)
{
	struct duty_row *row;

	if (!is_in_window(sums->pauses, sums->window, time_ns))
		sums->window = pauses_ended(sums->pauses, time_ns);
	if (grow(&sums->rows, &sums->capacity, (size_t)place + 1, sizeof(*sums->rows)) < 0)
		return -ENOMEM;
	row = &sums->rows[place];
	row->groups[DUTY_GPU_TIME][sums->window % DUTY_GROUPS] += (double)gpu_ns;
	row->groups[DUTY_COUNT][sums->window % DUTY_GROUPS]++;
	sums->last_ns = time_ns > sums->last_ns ? time_ns : sums->last_ns;
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
	uint64_t recorded_ns = 0;

	if (span->until_ns <= span->from_ns)
		return;
	run->is_mixed |= run->log_count && (run->cycle.window_ns != span->cycle.window_ns ||
					    run->cycle.period_ns != span->cycle.period_ns);
	run->cycle = span->cycle;
	sums->rotation = (unsigned)(run->window_count % DUTY_GROUPS);
	for (size_t w = 0; w <= span->pauses->count; w++) {
		uint64_t ns = window_ns(span, w);

		run->group_ns[(w + sums->rotation) % DUTY_GROUPS] += (double)ns;
		recorded_ns += ns;
		run->window_count += ns != 0;
	}
	run->log_count++;
	run->log_unrecorded_count += !recorded_ns;
	run->recorded_ns += recorded_ns;
	run->covered_ns += span->until_ns - span->from_ns -
			   pauses_between_ns(span->away, span->from_ns, span->until_ns);
}

int duty_sums_add_path(const struct duty_sums *sums, uint32_t place, struct duty_run *run,
		       uint32_t node)
{
	if (place >= sums->capacity)
		return 0;
	if (grow(&run->rows, &run->capacity, (size_t)node + 1, sizeof(*run->rows)) < 0)
		return -ENOMEM;
	for (int w = 0; w < DUTY_WEIGHTS; w++)
		for (unsigned g = 0; g < DUTY_GROUPS; g++)
			run->rows[node].groups[w][(g + sums->rotation) % DUTY_GROUPS] +=
				sums->rows[place].groups[w][g];
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

static double factor(const struct duty_run *run)
{
	return run->covered_ns > run->recorded_ns
		       ? (double)run->covered_ns / (double)run->recorded_ns
		       : 1;
}

static double quantile(const struct duty_run *run)
{
	double squares = 0, recorded_ns = (double)run->recorded_ns;
	int freedom;

	for (int g = 0; g < DUTY_GROUPS; g++)
		squares += run->group_ns[g] * run->group_ns[g];
	freedom = (int)(recorded_ns * recorded_ns / squares - 0.99);
	return student[freedom < 1 ? 1 : freedom < DUTY_GROUPS ? freedom : DUTY_GROUPS - 1];
}

/*
 * The error of an estimate, relative to it, from the parts of its sum. If nearly all was recorded
 * in one group, nothing tells how much windows differ: then it is as large as the estimate.
 */
static double relative_error(const struct duty_run *run, const double *parts)
{
	double sum = 0, squares = 0;

	for (int g = 0; g < DUTY_GROUPS; g++)
		sum += parts[g];
	if (sum <= 0)
		return 0;
	for (int g = 0; g < DUTY_GROUPS; g++) {
		double share = run->group_ns[g] / (double)run->recorded_ns;
		double residual = parts[g] / sum - share;

		if (share > 0.9)
			return 1;
		squares += residual * residual / (1 - share);
	}
	return quantile(run) * sqrt(squares * (1 - 1 / factor(run)));
}

/* A table that is being summed up. */
struct estimate_sum {
	double recorded;
	double parts[DUTY_GROUPS];
};

static void add(struct estimate_sum *to, double recorded, const double *parts)
{
	to->recorded += recorded;
	for (int g = 0; parts && g < DUTY_GROUPS; g++)
		to->parts[g] += parts[g];
}

static void sum_up(const struct duty_run *run, const struct paths *paths, enum weight weight,
		   enum duty_table table, struct estimate_sum *sums)
{
	enum duty_weight column = weight == WEIGHT_GPU_TIME ? DUTY_GPU_TIME : DUTY_COUNT;

	/* Parents precede children, so a backward pass adds up complete subtrees. */
	for (uint32_t n = paths->node_count; n-- > 0;) {
		size_t to = table == DUTY_BY_NAME ? paths->nodes[n].name : n;

		add(&sums[to], (double)paths->nodes[n].weights[weight],
		    n < run->capacity ? run->rows[n].groups[column] : NULL);
		if (table == DUTY_BY_FRAME && n != PATH_ROOT)
			add(&sums[paths->nodes[n].parent], sums[n].recorded, sums[n].parts);
	}
}

int duty_run_estimates(const struct duty_run *run, const struct paths *paths, enum weight weight,
		       enum duty_table table, struct duty_estimate **estimates_out)
{
	size_t count = table == DUTY_BY_NAME ? paths->names.count : paths->node_count;
	struct estimate_sum *sums;

	*estimates_out = NULL;
	if (!run->recorded_ns || run->is_mixed ||
	    (weight != WEIGHT_GPU_TIME && weight != WEIGHT_COUNT))
		return 0;
	sums = calloc(count + 1, sizeof(*sums));
	*estimates_out = calloc(count + 1, sizeof(**estimates_out));
	if (!sums || !*estimates_out) {
		free(sums);
		free(*estimates_out);
		*estimates_out = NULL;
		return -ENOMEM;
	}
	sum_up(run, paths, weight, table, sums);
	for (size_t i = 0; i < count; i++) {
		double value = sums[i].recorded * factor(run);

		(*estimates_out)[i] =
			(struct duty_estimate){value, value * relative_error(run, sums[i].parts)};
	}
	free(sums);
	return 0;
}
