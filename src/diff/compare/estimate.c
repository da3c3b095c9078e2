/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates and tests differences. docs/internals/DIFF_METHOD.md describes the model and its
 * sources.
 *
 * Besides run-to-run noise, sides differ by drift between sets of a baseline, by a trend while the
 * machine warms up, and by where warm-up ends in each run.
 */
#include "diff/compare/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "diff/stats/statistics.h"
#include "log/base/compare.h"

void run_values_init(struct run_values *v, const struct comparison *c)
{
	size_t n = c->run_count;
	double *room = xt_calloc(5 * n + 1, sizeof(*room));

	*v = (struct run_values){.x = room,
				 .means = room + n,
				 .typical = room + 2 * n,
				 .counts = room + 3 * n,
				 .wholes = room + 4 * n};
}

void run_values_free(struct run_values *v)
{
	free(v->x);
}

/* The sum of rows in a run. If the run has no items, METRIC_EACH has a mean of NAN. */
static struct quantity sum_rows(const struct comparison_row *const *rows, size_t count, size_t run,
				enum metric metric)
{
	struct quantity sum = {0};
	double chunks = 0.0;

	for (size_t i = 0; i < count; i++) {
		const struct profile_entry *entry = rows[i]->entries[run];
		const struct quantity *q;
		double weight = 1.0;

		if (!entry)
			continue;
		q = &entry->quantities[metric];
		if (metric == METRIC_EACH)
			weight = entry->quantities[METRIC_COUNT].mean;
		if (!(weight > 0.0))
			continue;
		/* Variances add up. NAN stays NAN. */
		sum.mean += q->mean * weight;
		sum.typical += (rows[i]->level == LEVEL_TOTAL ? q->mean : q->typical) * weight;
		sum.error += q->error * q->error * weight * weight;
		sum.residual += q->residual * q->residual * weight * weight;
		chunks += weight;
	}
	if (metric != METRIC_EACH)
		chunks = 1.0;
	sum.mean /= chunks;
	sum.typical /= chunks;
	sum.error = sqrt(sum.error) / chunks;
	sum.residual = sqrt(sum.residual) / chunks;
	return sum;
}

static void take_counts(struct run_values *v, const struct comparison_row *const *rows,
			size_t count, size_t run)
{
	v->counts[run] = v->wholes[run] = 0.0;
	for (size_t i = 0; i < count; i++) {
		const struct profile_entry *entry = rows[i]->entries[run];

		v->counts[run] += entry ? entry->quantities[METRIC_COUNT].mean : 0.0;
		v->wholes[run] += entry ? entry->whole_count : 0.0;
	}
}

void run_values_take(struct run_values *v, const struct comparison *c, enum metric metric,
		     const struct comparison_row *const *rows, size_t count)
{
	double sum = 0.0, within = 0.0;
	size_t used = 0, known = 0;

	v->has_common = !v->keep_common && c->common.is_known &&
			level_specs[rows[0]->level].is_gpu_time && metric != METRIC_COUNT;
	v->is_log = true;
	v->is_time = metric != METRIC_COUNT && rows[0]->unit == UNIT_NS;
	v->level = rows[0]->level;
	v->metric = metric;
	for (size_t r = 0; r < c->run_count; r++) {
		struct quantity q = sum_rows(rows, count, r, metric);
		double error = (v->has_common ? q.residual : q.error) / q.typical;

		v->x[r] = NAN;
		v->means[r] = q.mean;
		v->typical[r] = q.typical;
		take_counts(v, rows, count, r);
		if (isnan(q.mean))
			continue;
		if (r < c->judged_count) {
			v->is_log &= q.typical > 0.0;
			sum += q.typical;
			used++;
		}
		if (isfinite(error)) {
			within += error * error;
			known++;
		}
	}
	v->within = known ? within / (double)known : NAN;
	for (size_t r = 0; r < c->run_count; r++) {
		double typical = v->typical[r];

		if (isnan(v->means[r]) || (r >= c->judged_count && !(typical > 0.0)))
			continue;
		v->x[r] = v->is_log ? log(typical) : sum > 0.0 ? typical * (double)used / sum : 0.0;
	}
}

#define SETS_MAX      64
#define STEPS_MIN     3	     /* with fewer, one change of the program would dominate */
#define NORMAL_MIDDLE 0.6745 /* median of |x| of the standard normal distribution */

/*
 * The variance of the difference between successive sets of BASE's baseline, including the newest
 * one, and its degrees of freedom. Returns false if there are too few sets.
 */
static bool drift_variance(const struct comparison *c, const struct run_values *v,
			   double *variance_out, double *dof_out)
{
	double sums[SETS_MAX] = {0}, steps[SETS_MAX], deviation;
	size_t counts[SETS_MAX] = {0}, last = 0, count = 0;

	for (size_t r = 0; r < c->run_count; r++) {
		size_t set = r < c->judged_count ? 0 : c->runs[r].profile->history;

		if (isnan(v->x[r]) || c->runs[r].side != SIDE_BASE || set >= SETS_MAX)
			continue;
		sums[set] += v->x[r];
		counts[set]++;
	}
	if (!counts[0])
		return false;
	for (size_t set = 1; set < SETS_MAX; set++) {
		if (!counts[set])
			continue;
		steps[count++] =
			fabs(sums[set] / (double)counts[set] - sums[last] / (double)counts[last]);
		last = set;
	}
	if (count < STEPS_MIN)
		return false;
	/* The median ignores a step in which the program itself changed. */
	deviation = median(steps, count) / NORMAL_MIDDLE;
	*variance_out = deviation * deviation;
	/*
	 * Found by simulation at alpha = 1 %: successive steps share a set, so they are not
	 * independent.
	 */
	*dof_out = (double)(count / 2 + 1);
	return true;
}

/* The runs of both sides, BASE first, and when they started. */
struct run_series {
	double x[1024], time[1024];
	size_t base_count, count;
	bool has_times;
};

/*
 * Largest gap between the sides, in standard deviations of the start times. 3.5: one side directly
 * follows the other.
 */
#define GAP_MAX 8.0
#define TREND_P 0.5 /* p-value up to which a trend counts as visible */

static void run_series_make(struct run_series *s, const struct comparison *c,
			    const struct run_values *v)
{
	*s = (struct run_series){.has_times = true};
	for (size_t r = 0; r < c->judged_count && s->count < 1024; r++) {
		if (isnan(v->x[r]))
			continue;
		s->base_count += c->runs[r].side == SIDE_BASE;
		s->time[s->count] = (double)c->runs[r].profile->start_realtime_ns;
		s->has_times &= c->runs[r].profile->start_realtime_ns != 0;
		s->x[s->count++] = v->x[r];
	}
}

/* Do the recording periods of the sides overlap? */
static bool run_series_is_interleaved(const struct run_series *s)
{
	double first[SIDES] = {INFINITY, INFINITY}, last[SIDES] = {0};

	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;

		first[side] = fmin(first[side], s->time[i]);
		last[side] = fmax(last[side], s->time[i]);
	}
	return first[SIDE_BASE] < last[SIDE_NEW] && first[SIDE_NEW] < last[SIDE_BASE];
}

/*
 * The difference of the sides after removing a linear trend over time (least squares, one mean for
 * each side), and its standard error. Machines that warm up show such a trend. Returns false if a
 * trend cannot be estimated. If one side was recorded after the other, it also returns false unless
 * the trend is visible, because time and side are confounded. The variance of a run is at least
 * `least`.
 */
static bool run_series_trend(const struct run_series *s, double least, double *difference,
			     double *error)
{
	double means[SIDES][2] = {{0}}, tt = 0.0, tx = 0.0, rest = 0.0, slope, apart, variance;
	size_t counts[SIDES] = {s->base_count, s->count - s->base_count};

	if (!s->has_times || s->count < 6)
		return false;
	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;

		means[side][0] += s->x[i] / (double)counts[side];
		means[side][1] += s->time[i] / (double)counts[side];
	}
	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;
		double t = s->time[i] - means[side][1];

		tt += t * t;
		tx += t * (s->x[i] - means[side][0]);
	}
	if (!(tt > 0.0) || !counts[0] || !counts[1])
		return false;
	slope = tx / tt;
	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;
		double left = s->x[i] - means[side][0] - slope * (s->time[i] - means[side][1]);

		rest += left * left;
	}
	apart = means[1][1] - means[0][1];
	/*
	 * Do not extrapolate the line across a long gap: a warm-up of minutes does not continue for
	 * a day.
	 */
	if (apart * apart > GAP_MAX * GAP_MAX * tt / (double)s->count)
		return false;
	variance = rest / (double)(s->count - 3);
	variance = variance > least ? variance : least;
	if (!run_series_is_interleaved(s) &&
	    student_t_p_value(slope * sqrt(tt / variance), (double)(s->count - 3)) > TREND_P)
		return false;
	*difference = means[1][0] - means[0][0] - slope * apart;
	*error = sqrt(variance *
		      (1.0 / (double)counts[0] + 1.0 / (double)counts[1] + apart * apart / tt));
	return *error > 0.0;
}

#define COUNTS_ALIKE 1e-9 /* per iteration: at most rounding */

/* Do all runs have the same number of iterations, with different numbers of warm-up iterations? */
static bool boundaries_differ(const struct comparison *c)
{
	const struct run_profile *first = c->runs[0].profile;
	bool differs = false;

	for (size_t r = 0; r < c->judged_count; r++) {
		const struct run_profile *run = c->runs[r].profile;

		if (!run_profile_has_iterations(run) ||
		    run->iterations.found_count != first->iterations.found_count)
			return false;
		differs |= run->iterations.used_count != first->iterations.used_count;
	}
	return differs;
}

/*
 * If all runs did the same at the same time, a run with a longer warm-up would count at most as
 * many items. If most pairs of runs of the two sides contradict this, the items moved in time.
 * Random items contradict it sometimes.
 */
static bool has_moved(const struct comparison *c, const struct run_values *v, enum side more)
{
	size_t pairs = 0, against = 0;

	for (size_t a = 0; a < c->judged_count; a++) {
		const struct run_profile *with = c->runs[a].profile;

		if (c->runs[a].side != more)
			continue;
		for (size_t b = 0; b < c->judged_count; b++) {
			const struct run_profile *without = c->runs[b].profile;

			if (c->runs[b].side == more ||
			    with->iterations.used_count > without->iterations.used_count)
				continue;
			pairs++;
			against += v->counts[a] * (double)with->iterations.used_count >
				   v->counts[b] * (double)without->iterations.used_count + 0.5;
		}
	}
	return against > pairs / 2;
}

/* Do both sides execute this equally often, but count different parts of it as warm-up? */
static bool warmup_boundary_explains(const struct comparison *c, const struct run_values *v)
{
	double counts[SIDES] = {0}, wholes[SIDES] = {0}, used = 0.0, counted, whole;
	bool varies = false;

	if (!boundaries_differ(c))
		return false;
	for (size_t r = 0; r < c->judged_count; r++) {
		enum side side = c->runs[r].side;

		varies |= fabs(v->counts[r] - v->counts[0]) > COUNTS_ALIKE;
		counts[side] += v->counts[r] / (double)c->side_counts[side];
		wholes[side] += v->wholes[r] / (double)c->side_counts[side];
		used += (double)c->runs[r].profile->iterations.used_count /
			(double)(c->side_counts[SIDE_BASE] + c->side_counts[SIDE_NEW]);
	}
	counted = counts[SIDE_NEW] - counts[SIDE_BASE];
	/* A difference of one per iteration is not a rare item. */
	if (!varies || !(fabs(counted) < 1.0))
		return false;
	if (has_moved(c, v, counted > 0.0 ? SIDE_NEW : SIDE_BASE))
		return false;
	/* Additional items would also be additional in the whole run. */
	whole = copysign(1.0, counted) * (wholes[SIDE_NEW] - wholes[SIDE_BASE]);
	return whole <= fabs(counted) * used / 2.0;
}

/* Prior standard deviation, around 1, of a path's slope against the common factor. */
#define SLOPE_SPREAD 0.5
#define POWER	     0.95 /* probability of detecting the smallest detectable change */
#define GROUPS_MAX   64
#define COUNT_SLACK  1e-6 /* rounding of mean counts */
/*
 * Minimum variance of a time between runs, as logarithms. Smaller values are chance or a simulated
 * GPU. The quietest rows of real GPUs have twice as much.
 */
#define TIME_VARIANCE_MIN 1e-8
#define EXACT_RUNS_MIN	  3 /* runs of a side whose equality is evidence */

/* Runs vary around the mean of their group: a side, or an older set. */
static size_t group_of(const struct compared_run *run)
{
	return run->group < GROUPS_MAX ? run->group : GROUPS_MAX - 1;
}

struct group {
	size_t count;
	double x, common; /* means */
};

static size_t make_groups(struct group *groups, const struct comparison *c,
			  const struct run_values *v)
{
	size_t used = 0;

	for (size_t r = 0; r < c->run_count; r++) {
		struct group *g = &groups[group_of(&c->runs[r])];

		if (isnan(v->x[r]))
			continue;
		used += !g->count++;
		g->x += v->x[r];
		g->common += c->runs[r].common;
	}
	for (size_t i = 0; i < GROUPS_MAX; i++) {
		if (!groups[i].count)
			continue;
		groups[i].x /= (double)groups[i].count;
		groups[i].common /= (double)groups[i].count;
	}
	return used;
}

void estimate_make(struct estimate *e, const struct comparison *c, const struct run_values *v,
		   double prior)
{
	struct group groups[GROUPS_MAX] = {0};
	size_t group_count = make_groups(groups, c, v), used = 0;
	const struct group *base = &groups[SIDE_BASE], *new = &groups[SIDE_NEW];
	double squares = 0.0, products = 0.0, slope = 0.0, spread = 0.0, rest = 0.0, apart;

	*e = (struct estimate){.difference = NAN, .factor = NAN, .sample.within = v->within};
	for (size_t r = 0; r < c->run_count; r++) {
		const struct group *g = &groups[group_of(&c->runs[r])];
		double common = c->runs[r].common - g->common;

		if (isnan(v->x[r]))
			continue;
		used++;
		squares += common * common;
		products += common * (v->x[r] - g->x);
	}
	if (v->has_common) {
		/* Shrink the slope towards 1. */
		spread = squares + prior / (SLOPE_SPREAD * SLOPE_SPREAD);
		slope = isinf(prior) || !(spread > 0.0)
				? 1.0
				: (products + prior / (SLOPE_SPREAD * SLOPE_SPREAD)) / spread;
	}
	for (size_t r = 0; r < c->run_count; r++) {
		const struct group *g = &groups[group_of(&c->runs[r])];
		double left = v->x[r] - g->x - slope * (c->runs[r].common - g->common);

		if (!isnan(v->x[r]))
			rest += left * left;
	}
	e->sample.dof = (double)used - (double)group_count;
	if (v->has_common && spread > 0.0 && !isinf(spread))
		e->sample.dof -= squares / spread;
	if (e->sample.dof > 0.5)
		e->sample.variance = rest / e->sample.dof;
	else
		e->sample.dof = 0.0;
	if (!base->count || !new->count)
		return;
	apart = new->common - base->common;
	e->difference = new->x - base->x - slope *apart;
	e->factor = 1.0 / (double)base->count + 1.0 / (double)new->count;
	if (v->has_common && spread > 0.0 && !isinf(spread))
		e->factor += apart * apart / spread;
}

/* Lower limit for the variance of a run. */
static double variance_min(const struct run_values *v)
{
	return fmax(v->is_time ? TIME_VARIANCE_MIN : 0.0, v->within);
}

/*
 * The error of the mean of NEW from its own runs. Rows that BASE lacks have no other noise
 * estimate.
 */
static void set_own_error(struct effect *effect, const struct comparison *c,
			  const struct run_values *v)
{
	double n = 0.0, squares = 0.0, variance;

	for (size_t r = 0; r < c->judged_count; r++) {
		double left = v->means[r] / effect->new - 1.0;

		if (c->runs[r].side != SIDE_NEW || isnan(left))
			continue;
		squares += left * left;
		n++;
	}
	effect->new_runs.error = NAN;
	effect->new_runs.dof = n - 1.0;
	if (n < 2.0 || !(effect->new > 0.0))
		return;
	variance = squares / (n - 1.0);
	/* Equal counts differ by rounding only. */
	if (!v->is_time && variance < EXACT_VARIANCE)
		variance = 0.0;
	effect->new_runs.error = sqrt(fmax(variance, variance_min(v)) / n);
}

/* Set what needs no test. */
static void set_means(struct effect *effect, const struct comparison *c, const struct run_values *v)
{
	double sums[SIDES] = {0}, least[SIDES] = {INFINITY, INFINITY};
	double most[SIDES] = {-INFINITY, -INFINITY};
	size_t counts[SIDES] = {0};
	uint32_t new_runs = 0;
	double new_count = 0.0;

	for (size_t r = 0; r < c->judged_count; r++) {
		if (isnan(v->means[r]))
			continue;
		least[c->runs[r].side] = fmin(least[c->runs[r].side], v->means[r]);
		most[c->runs[r].side] = fmax(most[c->runs[r].side], v->means[r]);
		if (c->runs[r].side == SIDE_NEW) {
			new_runs += v->means[r] > 0.0;
			new_count += v->counts[r];
		}
		sums[c->runs[r].side] += v->means[r];
		counts[c->runs[r].side]++;
	}
	*effect = (struct effect){
		.base = counts[SIDE_BASE] ? sums[SIDE_BASE] / (double)counts[SIDE_BASE] : NAN,
		.new = counts[SIDE_NEW] ? sums[SIDE_NEW] / (double)counts[SIDE_NEW] : NAN,
		.base_min = least[SIDE_BASE],
		.base_max = most[SIDE_BASE],
		.new_runs = {.min = least[SIDE_NEW],
			     .max = most[SIDE_NEW],
			     .count = new_runs,
			     .is_rare = new_count < (double)new_runs * (1.0 - COUNT_SLACK)},
		.is_time = v->is_time,
		.net = {NAN, -INFINITY, INFINITY, NAN, NAN, NAN},
		.test = {.p = NAN, .p_adjusted = NAN},
	};
	effect->change = effect->new - effect->base;
	effect->ratio = effect->base != 0.0 ? effect->change / effect->base
			: effect->change    ? INFINITY
					    : 0.0;
	set_own_error(effect, c, v);
}

/* Converts a difference in the scale of run_values.x to a ratio to the base. */
static double to_ratio(const struct run_values *v, const struct effect *effect, double difference,
		       const struct comparison *c)
{
	double sum = 0.0;
	size_t used = 0;

	if (v->is_log)
		return expm1(difference);
	for (size_t r = 0; r < c->judged_count; r++) {
		if (isnan(v->means[r]))
			continue;
		sum += v->means[r];
		used++;
	}
	if (effect->base > 0.0)
		return difference * sum / (double)used / effect->base;
	return difference > 0.0 ? INFINITY : difference < 0.0 ? -INFINITY : 0.0;
}

/* Do all runs of one side have it, and none of the other side? */
static bool is_one_sided(const struct comparison *c, const struct run_values *v)
{
	size_t with[SIDES] = {0};

	for (size_t r = 0; r < c->judged_count; r++)
		if (v->means[r] > 0.0)
			with[c->runs[r].side]++;
	return (!with[SIDE_BASE] && with[SIDE_NEW] == c->side_counts[SIDE_NEW]) ||
	       (!with[SIDE_NEW] && with[SIDE_BASE] == c->side_counts[SIDE_BASE]);
}

/*
 * Suppose each run randomly has one of two variants. This is an upper limit of the probability that
 * all runs of BASE have one variant and all runs of NEW have the other.
 */
static double split_probability(const struct comparison *c)
{
	double base = (double)c->side_counts[SIDE_BASE], new = (double)c->side_counts[SIDE_NEW];

	return 2.0 * pow(base / (base + new), base) * pow(new / (base + new), new);
}

/*
 * There is no change if only the end of warm-up differs. This also applies to times if one side
 * counts no item.
 */
static bool apply_warmup_boundary(struct effect *effect, const struct comparison *c,
				  const struct run_values *v)
{
	if (v->metric != METRIC_COUNT && (v->metric != METRIC_VALUE || !is_one_sided(c, v)))
		return false;
	if (!warmup_boundary_explains(c, v))
		return false;
	effect->is_boundary_shift = true;
	effect->net = (struct net_change){.dof = INFINITY};
	effect->test.p = 1.0;
	return true;
}

/*
 * Handle values without noise: on one side only, or counts that are equal in all runs of each side.
 * The only chance effect is then that each run randomly has one of two variants. noise is that of
 * the row's family. A one-sided time uses the noise of the counts of its level.
 */
static bool make_exact(struct effect *effect, const struct comparison *c,
		       const struct run_values *v, const struct estimate *estimate,
		       const struct noise *noise)
{
	bool one_sided = is_one_sided(c, v);
	double varying = noise->varying_share;

	if (!one_sided && (v->is_time || !(estimate->sample.dof > 0.0 &&
					   estimate->sample.variance < EXACT_VARIANCE)))
		return false;
	if (v->level == LEVEL_TOTAL)
		/* A total changes if any path changes. */
		varying = fmin(1.0, c->noises[LEVEL_PATH][METRIC_COUNT].varying_count);
	else if (one_sided)
		varying = c->noises[v->level][METRIC_COUNT].varying_share;
	effect->is_exact = true;
	effect->net =
		(struct net_change){effect->ratio, effect->ratio, effect->ratio, .dof = INFINITY};
	effect->test.p =
		fabs(effect->ratio) < 1e-7 ? 1.0 : fmin(1.0, varying * split_probability(c));
	if (c->side_counts[SIDE_BASE] < EXACT_RUNS_MIN ||
	    c->side_counts[SIDE_NEW] < EXACT_RUNS_MIN) {
		effect->test.p = 1.0;
		effect->net.detectable = NAN;
	}
	return true;
}

static void make_interval(struct effect *effect, const struct comparison *c,
			  const struct run_values *v, double difference, double error, double dof,
			  double weight)
{
	double bound = student_t_quantile(c->alpha, dof);
	double found = student_t_quantile(c->alpha * weight, dof) +
		       student_t_quantile(2.0 * (1.0 - POWER), dof);

	effect->net = (struct net_change){
		.ratio = to_ratio(v, effect, difference, c),
		.low = to_ratio(v, effect, difference - bound * error, c),
		.high = to_ratio(v, effect, difference + bound * error, c),
		.error = error,
		.dof = dof,
		.detectable = to_ratio(v, effect, found * error, c),
	};
}

void effect_from_estimate(struct effect *effect, const struct comparison *c,
			  const struct run_values *v, const struct estimate *e,
			  const struct noise *noise, double weight)
{
	static const struct noise none = {0};
	double dof, variance, error;

	set_means(effect, c, v);
	if (isnan(e->difference))
		return;
	if (apply_warmup_boundary(effect, c, v) || make_exact(effect, c, v, e, noise))
		return;
	/* A row that some runs lack is not like other rows: use its own runs only. */
	variance =
		fmax(variance_min(v), noise_variance(v->is_log ? noise : &none, &e->sample, &dof));
	if (!(dof > 0.0) || !(variance > 0.0))
		return;
	error = sqrt(variance * e->factor);
	effect->test.p = student_t_p_value(e->difference / error, dof);
	make_interval(effect, c, v, e->difference, error, dof, weight);
}

/*
 * Sides that were not recorded alternately also differ by drift. Test the difference against the
 * drift between older sets of BASE, as far as it exceeds run-to-run noise.
 */
static void add_drift(struct effect *effect, const struct comparison *c, const struct run_values *v,
		      const struct estimate *e, double variance, double dof)
{
	double runs = variance * e->factor, drift, drift_dof, error, p;

	if (!drift_variance(c, v, &drift, &drift_dof) || drift <= runs)
		return;
	drift -= runs;
	error = sqrt(runs + drift);
	/* Welch-Satterthwaite equation. */
	dof = (runs + drift) * (runs + drift) / (runs * runs / dof + drift * drift / drift_dof);
	p = student_t_p_value(e->difference / error, dof);
	if (p <= effect->test.p)
		return;
	effect->test.is_drift = effect->test.p <= c->alpha && p > c->alpha;
	effect->test.p = p;
	make_interval(effect, c, v, e->difference, error, dof, 1.0);
}

void effect_from_runs(struct effect *effect, const struct comparison *c, const struct run_values *v)
{
	static const struct noise none = {0};
	double dof, variance, error, difference, low, high, p;
	struct estimate e;
	struct run_series series;

	estimate_make(&e, c, v, INFINITY);
	effect_from_estimate(effect, c, v, &e, &none, 1.0);
	/* Nothing was tested. */
	if (!(effect->net.error > 0.0))
		return;
	variance = fmax(variance_min(v), noise_variance(&none, &e.sample, &dof));
	run_series_make(&series, c, v);
	if (run_series_trend(&series, variance_min(v), &difference, &error)) {
		p = student_t_p_value(difference / error, dof - 1.0);
		if (p > effect->test.p) {
			effect->test.p = p;
			make_interval(effect, c, v, difference, error, dof - 1.0, 1.0);
		}
	}
	if (!series.has_times || !run_series_is_interleaved(&series))
		add_drift(effect, c, v, &e, variance, dof);
	/* With few permutations, no p-value can be below the error rate. */
	if ((double)permutation_count(series.count, series.base_count) * c->alpha < 2.0)
		return;
	p = permutation_p(series.x, series.base_count, series.count);
	effect->test.is_disputed = effect->test.p <= c->alpha && p > c->alpha;
	effect->test.p = p > effect->test.p ? p : effect->test.p;
	permutation_interval(series.x, series.base_count, series.count, c->alpha, &low, &high);
	effect->net.low = fmin(effect->net.low, to_ratio(v, effect, low, c));
	effect->net.high = fmax(effect->net.high, to_ratio(v, effect, high, c));
}
