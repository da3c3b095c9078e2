/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling rate as a function of the tracer's cost, with costs and times set by the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/writer/record_account.h"

#define PERIOD_NS     UINT64_C(100000000)
#define LIMIT_PERCENT 1.0

static uint64_t now_ns = PERIOD_NS;

/* Simulates periods in which the tracer takes this share of the thread's time. */
static void pass(unsigned periods, double percent)
{
	uint32_t one_in;

	for (unsigned p = 0; p < periods; p++) {
		now_ns += PERIOD_NS;
		counter_add(&current_thread_buffer->slow_path_ns,
			    (uint64_t)(percent / 100 * PERIOD_NS));
		thread_buffer_count_up(current_thread_buffer, XT_RING_CALLS_SEEN);
		sampling_control(LIMIT_PERCENT, now_ns, &one_in);
	}
}

static void keeps_cost_below_limit(void **unused)
{
	(void)unused;
	pass(1, 0);
	pass(2, 2);
	assert_true(atomic_load(&sampling_shift) > 0);
	pass(100, 0.9);
	assert_int_equal(sampling_over_limit_ns(), 0);
}

static void reports_time_above_limit(void **unused)
{
	uint64_t beyond_ns;

	(void)unused;
	pass(50, 20);
	assert_int_equal(atomic_load(&sampling_shift), SAMPLING_SHIFT_MAX);
	beyond_ns = sampling_over_limit_ns();
	assert_in_range(beyond_ns, PERIOD_NS, 50 * PERIOD_NS);
	pass(7, 20);
	assert_int_equal(sampling_over_limit_ns(), beyond_ns + 7 * PERIOD_NS);
	pass(5, 0.9);
	assert_int_equal(sampling_over_limit_ns(), beyond_ns + 7 * PERIOD_NS);
}

static int set_up(void **unused)
{
	(void)unused;
	return thread_buffer_claim() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_cost_below_limit),
		cmocka_unit_test(reports_time_above_limit),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
