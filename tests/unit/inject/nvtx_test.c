/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX in a program that does not use CUDA, or not yet: nobody reads the ring, so nobody waits for that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/callbacks.h"
#include "inject/lane.h"
#include "inject/nvtx.h"
#include "inject/nvtx_objects.h"

#define EVENTS 20000 /* several times what a ring holds */

static void many_events(void)
{
	for (int i = 0; i < EVENTS; i++)
		nvtx_note_name(XT_RANGE_NAME_CATEGORY, (uint64_t)i, 0, "category", NULL);
}

static uint64_t counted(enum xt_ring_counter counter)
{
	return thread_lane->ring->counters[counter];
}

static void test_nobody_waits(void **unused)
{
	(void)unused;
	assert_false(callbacks_active);
	many_events();
	assert_non_null(thread_lane);
	assert_int_equal(counted(XT_RING_WAITED_NS), 0);
	assert_int_equal(counted(XT_RING_RANGES_SEEN), EVENTS);
	/* What came first is there when a writer comes, and what was lost is counted. */
	assert_in_range(counted(XT_RING_RANGES_LOST), 1, EVENTS - 500);
	assert_true(ring_written(thread_lane) > 0);
}

static void test_with_a_writer_it_is_waited_for(void **unused)
{
	(void)unused;
	callbacks_active = true;
	nvtx_note_name(XT_RANGE_NAME_CATEGORY, 1, 0, "category", NULL);
	callbacks_active = false;
	assert_true(counted(XT_RING_WAITED_NS) > 0);
}

/* Where tracing was declined. */
static void test_abandoned(void **unused)
{
	uint64_t seen = counted(XT_RING_RANGES_SEEN);

	(void)unused;
	nvtx_abandon();
	many_events();
	assert_int_equal(counted(XT_RING_RANGES_SEEN), seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_with_a_writer_it_is_waited_for),
		cmocka_unit_test(test_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
