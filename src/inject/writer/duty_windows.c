/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/duty_windows.h"

#include <sys/random.h>
#include <unistd.h>

#include "inject/runtime/clock.h"

static struct {
	struct xt_duty_cycle cycle;
	bool is_on;
	uint64_t from_ns, duration_ns; /* the next window */
} windows;

void duty_windows_turn_on(void)
{
	windows.is_on = true;
	windows.from_ns = UINT64_MAX;
}

void duty_windows_begin(const struct xt_duty_cycle *cycle)
{
	windows.cycle = *cycle;
	if (cycle->window_ns)
		duty_windows_turn_on();
}

const struct xt_duty_cycle *duty_windows_cycle(void)
{
	return &windows.cycle;
}

bool duty_windows_are_on(void)
{
	return windows.is_on;
}

/* For a kernel or a sandbox without random numbers. Processes must not share their windows. */
static uint64_t process_seed(void)
{
	return monotonic_ns() ^ (uint64_t)getpid() << 32;
}

/* Uniform in [0, 1). */
static double random_part(void)
{
	static uint64_t fallback;
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = fallback =
			(fallback ? fallback : process_seed()) * UINT64_C(6364136223846793005) + 1;
	return (double)(number >> 11) / (double)(UINT64_C(1) << 53);
}

/*
 * Between 1/2 and 3/2 of the mean. That is enough to lose any rhythm as long as the period. It
 * spreads the windows more evenly than longer gaps would, which makes estimates more exact.
 */
static double random_gap_ns(void)
{
	return (0.5 + random_part()) * (double)(windows.cycle.period_ns - windows.cycle.window_ns);
}

/* The rest of a gap that is under way. A moment is in a gap in proportion to its length. */
static double random_rest_ns(void)
{
	double mean_ns = (double)(windows.cycle.period_ns - windows.cycle.window_ns), gap_ns;

	do
		gap_ns = random_gap_ns();
	while (random_part() * 1.5 * mean_ns > gap_ns);
	return random_part() * gap_ns;
}

void duty_windows_start(uint64_t now_ns)
{
	double window_ns = (double)windows.cycle.window_ns;
	double into_ns = random_part() * (double)windows.cycle.period_ns;

	windows.from_ns = now_ns;
	windows.duration_ns = windows.cycle.window_ns;
	if (into_ns < window_ns)
		windows.duration_ns -= (uint64_t)into_ns;
	else
		windows.from_ns += (uint64_t)random_rest_ns();
}

bool duty_windows_wait(void)
{
	return windows.is_on && windows.from_ns == UINT64_MAX;
}

void duty_windows_stop(void)
{
	windows.is_on = false;
}

bool duty_windows_next(uint64_t now_ns, uint64_t *duration_ns)
{
	if (!windows.is_on || now_ns < windows.from_ns)
		return false;
	*duration_ns = windows.duration_ns;
	windows.from_ns = now_ns + windows.duration_ns + (uint64_t)random_gap_ns();
	windows.duration_ns = windows.cycle.window_ns;
	return true;
}
