/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the tracer's cost and adjusts the sampling rate. Writer thread only, except the rate
 * itself.
 */
#include "inject/capture/sampling.h"

#define PERIOD_NS      UINT64_C(100000000)
#define HOLD_PERIODS   2  /* periods after a change before the next one */
#define BACK_PERIODS   10 /* periods below the limit before more stacks are captured */
#define ROOM_SHARE     0.8
#define FAR_BEYOND     4 /* above this multiple of the limit, take two steps at once */
#define TIMED_COUNT_OK 8 /* fewer are not significant */

HOT_STATE atomic_uint sampling_shift;

struct sums {
	uint64_t slow_path_ns;
	uint64_t timed_ns, timed_count;
	uint64_t seen;
};

static struct {
	uint64_t since_ns; /* 0: not started */
	struct sums before;
	uint64_t thread_buffer_seen[THREAD_BUFFERS_MAX];
	double call_ns; /* last estimate */
	unsigned hold, room;
	uint64_t over_limit_ns; /* time above the limit at the lowest rate */
} control;

static uint64_t relaxed(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void add_thread_buffer(struct sums *sums, const struct thread_buffer *tb)
{
	sums->slow_path_ns += relaxed(&tb->slow_path_ns);
	sums->timed_ns += relaxed(&tb->timed_ns);
	sums->timed_count += relaxed(&tb->timed_count);
	sums->seen += relaxed(&tb->ring->counters[XT_RING_CALLS_SEEN]);
}

uint64_t sampling_cost_ns(void)
{
	static struct sums
		counted[THREAD_BUFFERS_MAX]; /* what the sum includes of each thread buffer */
	static uint64_t sum_ns;

	/* A call is charged the mean cost when first seen, so that the sum never decreases. */
	for (uint32_t i = 0; i < thread_buffer_count(); i++) {
		const struct thread_buffer *tb = thread_buffer_at(i);
		struct sums sums = {0};

		if (!tb)
			continue;
		add_thread_buffer(&sums, tb);
		sum_ns += sums.slow_path_ns - counted[i].slow_path_ns;
		counted[i].slow_path_ns = sums.slow_path_ns;
		if (!sums.timed_count)
			continue;
		sum_ns += (uint64_t)((double)sums.timed_ns / (double)sums.timed_count *
				     (double)(sums.seen - counted[i].seen));
		counted[i].seen = sums.seen;
	}
	return sum_ns;
}

/* The sums now, and the number of threads that made calls since the last time. */
static struct sums sum_costs(uint32_t *active_out)
{
	struct sums sums = {0};

	*active_out = 0;
	for (uint32_t i = 0; i < thread_buffer_count(); i++) {
		const struct thread_buffer *tb = thread_buffer_at(i);
		uint64_t seen;

		if (!tb)
			continue;
		add_thread_buffer(&sums, tb);
		seen = relaxed(&tb->ring->counters[XT_RING_CALLS_SEEN]);
		*active_out += seen != control.thread_buffer_seen[i];
		control.thread_buffer_seen[i] = seen;
	}
	return sums;
}

/* Cost relative to the elapsed time of the threads that made calls. */
static double cost_percent(const struct sums *now, uint32_t active, uint64_t passed_ns)
{
	const struct sums *before = &control.before;
	uint64_t timed_count = now->timed_count - before->timed_count;

	if (timed_count >= TIMED_COUNT_OK)
		control.call_ns = (double)(now->timed_ns - before->timed_ns) / (double)timed_count;
	if (!active)
		return 0;
	return 100.0 *
	       ((double)(now->slow_path_ns - before->slow_path_ns) +
		control.call_ns * (double)(now->seen - before->seen)) /
	       ((double)passed_ns * active);
}

static uint32_t next_shift(uint32_t shift, double percent, double limit_percent)
{
	if (control.hold) {
		control.hold--;
		return shift;
	}
	if (percent > limit_percent) {
		control.room = 0;
		shift += percent > FAR_BEYOND * limit_percent ? 2 : 1;
		return shift < SAMPLING_SHIFT_MAX ? shift : SAMPLING_SHIFT_MAX;
	}
	/* Twice the stacks cost at most twice as much. */
	if (!shift || 2 * percent > ROOM_SHARE * limit_percent)
		control.room = 0;
	else if (++control.room >= BACK_PERIODS)
		return shift - 1;
	return shift;
}

bool sampling_control(double limit_percent, uint64_t now_ns, uint32_t *one_in_out)
{
	uint32_t shift = atomic_load(&sampling_shift), next, active;
	struct sums now;
	double percent;

	if (limit_percent <= 0 || now_ns - control.since_ns < PERIOD_NS)
		return false;
	now = sum_costs(&active);
	percent = cost_percent(&now, active, now_ns - control.since_ns);
	next = control.since_ns ? next_shift(shift, percent, limit_percent) : shift;
	if (control.since_ns && shift == SAMPLING_SHIFT_MAX && percent > limit_percent)
		control.over_limit_ns += now_ns - control.since_ns;
	control.since_ns = now_ns;
	control.before = now;
	if (next == shift)
		return false;
	control.hold = HOLD_PERIODS;
	control.room = 0;
	atomic_store(&sampling_shift, next);
	*one_in_out = UINT32_C(1) << next;
	return true;
}

uint64_t sampling_over_limit_ns(void)
{
	return control.over_limit_ns;
}
