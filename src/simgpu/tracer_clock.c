/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of records. The driver half uses CLOCK_MONOTONIC. CUPTI uses nanoseconds since 1970
 * until the client registers a clock. Both clocks run at the same rate, so conversion adds a
 * constant. It is 0 if the client's clock is CLOCK_MONOTONIC.
 */
#include <time.h>

#include "simgpu/tracer.h"

#define PROBES 16

static _Atomic int64_t offset_ns;
static _Atomic(xt_cupti_timestamp) client_clock;

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t tracer_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static uint64_t realtime_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

/* The offset from the narrowest of several probes, because interruptions widen the others. */
static int64_t measure_offset(xt_cupti_timestamp clock)
{
	uint64_t narrowest_ns = UINT64_MAX;
	int64_t found_ns = 0;

	for (int i = 0; i < PROBES; i++) {
		uint64_t before_ns = tracer_monotonic_ns();
		uint64_t their_ns = clock();
		uint64_t after_ns = tracer_monotonic_ns();

		if (before_ns <= their_ns && their_ns <= after_ns)
			return 0;
		if (after_ns - before_ns < narrowest_ns) {
			narrowest_ns = after_ns - before_ns;
			found_ns = (int64_t)(their_ns - before_ns - narrowest_ns / 2);
		}
	}
	return found_ns;
}

__attribute__((constructor)) static void start(void)
{
	atomic_store(&offset_ns, measure_offset(realtime_ns));
}

uint64_t tracer_clock_convert(uint64_t monotonic_ns)
{
	return monotonic_ns + (uint64_t)atomic_load_explicit(&offset_ns, memory_order_relaxed);
}

uint64_t tracer_clock_now_ns(void)
{
	xt_cupti_timestamp clock = atomic_load(&client_clock);

	return clock ? clock() : tracer_clock_convert(tracer_monotonic_ns());
}

SIM_EXPORT int cuptiActivityRegisterTimestampCallback(xt_cupti_timestamp clock)
{
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!clock)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	atomic_store(&offset_ns, measure_offset(clock));
	atomic_store(&client_clock, clock);
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiGetTimestamp(uint64_t *timestamp_out)
{
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!timestamp_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	*timestamp_out = tracer_clock_now_ns();
	return XT_CUPTI_SUCCESS;
}
