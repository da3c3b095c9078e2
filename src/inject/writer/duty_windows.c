/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/duty_windows.h"

#include <sys/random.h>

static struct {
	struct xt_duty_cycle cycle;
	bool is_on;
	uint64_t until_ns;	       /* 0: no limit */
	uint64_t next_period_ns;       /* start of the period after that of the next window */
	uint64_t from_ns, duration_ns; /* the next window */
} windows;

void duty_windows_begin(const struct xt_duty_cycle *cycle)
{
	windows.cycle = *cycle;
}

const struct xt_duty_cycle *duty_windows_cycle(void)
{
	return &windows.cycle;
}

bool duty_windows_are_on(void)
{
	return windows.is_on;
}

/* Uniform in [0, limit_ns). The bias of the modulus is below 1e-9 for periods of a day. */
static uint64_t random_below(uint64_t limit_ns, uint64_t now_ns)
{
	uint64_t number;

	/* Without random numbers, the moment is as good as one. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = now_ns * UINT64_C(0x9e3779b97f4a7c15) >> 16;
	return number % limit_ns;
}

static void place_window(uint64_t now_ns)
{
	uint64_t space_ns = windows.cycle.period_ns - windows.cycle.window_ns;

	windows.from_ns = windows.next_period_ns + random_below(space_ns, now_ns);
	windows.duration_ns = windows.cycle.window_ns;
	windows.next_period_ns += windows.cycle.period_ns;
}

/* Skips windows that would have ended already, such as those while the process was stopped. */
static void place_next_window(uint64_t now_ns)
{
	uint64_t period_ns = windows.cycle.period_ns;

	if (windows.next_period_ns + period_ns < now_ns)
		windows.next_period_ns +=
			(now_ns - windows.next_period_ns) / period_ns * period_ns;
	do
		place_window(now_ns);
	while (windows.from_ns + windows.duration_ns <= now_ns);
}

void duty_windows_start(uint64_t now_ns, uint64_t until_ns)
{
	windows.is_on = true;
	windows.until_ns = until_ns;
	windows.next_period_ns = now_ns - random_below(windows.cycle.period_ns, now_ns);
	place_next_window(now_ns);
	/* Moments near the start must have the same chance as others. */
	if (windows.from_ns < now_ns)
		windows.duration_ns -= now_ns - windows.from_ns;
}

void duty_windows_stop(void)
{
	windows.is_on = false;
}

bool duty_windows_are_over(uint64_t now_ns)
{
	return windows.is_on && windows.until_ns && now_ns >= windows.until_ns;
}

bool duty_windows_next(uint64_t now_ns, uint64_t *duration_ns)
{
	if (!windows.is_on || now_ns < windows.from_ns)
		return false;
	*duration_ns = windows.duration_ns;
	place_next_window(now_ns);
	return true;
}
