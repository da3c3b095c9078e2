/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations of a running program and their median.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "inject/writer/snapshot.h"
#include "log/base/call_result.h"
#include "log/base/number_format.h"

#define MAIN_THREAD  1
#define OTHER_THREAD 2
#define HEAD_STACK   10
#define LAYER_STACK  11
#define LAYERS	     6

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void median_is_of_the_latest_times(void **unused)
{
	uint64_t all_ns[300], latest_ns[TYPICAL_TIMES];
	struct typical_time typical = {0};

	(void)unused;
	srandom(1);
	for (size_t i = 0; i < 300; i++) {
		size_t first = i > TYPICAL_TIMES ? i - TYPICAL_TIMES : 0, count = i - first;
		uint64_t median_ns = typical_time_median_ns(&typical);

		for (size_t k = 0; k < count; k++)
			latest_ns[k] = all_ns[first + k];
		qsort(latest_ns, count, sizeof(*latest_ns), compare);
		assert_int_equal(median_ns, count < TYPICAL_TIMES_MIN ? 0 : latest_ns[count / 2]);
		all_ns[i] = 1 + (uint64_t)random() % 50;
		typical_time_add(&typical, all_ns[i]);
	}
}

/* One iteration of a loop. Returns the start of the iteration that its first launch ends, or 0. */
static uint64_t iterate(struct launch_period *period, uint64_t time_ns, uint32_t head)
{
	bool is_new;
	uint64_t start_ns = 0;

	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		start_ns |= launch_period_add(
			period, (struct launch_place){MAIN_THREAD, layer ? LAYER_STACK : head},
			time_ns + layer, &is_new);
		/* Fewer launches, without order. */
		if (layer % 2)
			launch_period_add(
				period,
				(struct launch_place){OTHER_THREAD, 20 + (uint32_t)random() % 5},
				time_ns + layer, &is_new);
	}
	return start_ns;
}

static void free_launches(struct launch_period *period)
{
	free(period->launches);
	free(period->places);
	xt_hash_free(&period->table);
}

static void iterations_begin_with_the_same_call_path(void **unused)
{
	struct launch_period period = {0};
	uint64_t time_ns = 1000;
	int found = 0;

	(void)unused;
	for (int i = 0; i < 300; i++, time_ns += 100) {
		uint64_t start_ns = iterate(&period, time_ns, HEAD_STACK);

		found += start_ns != 0;
		assert_true(!start_ns || start_ns == time_ns - 100);
	}
	/* Searched after 1,024 launches of both threads, 9 for each iteration. */
	assert_int_equal(period.marker.thread_id, MAIN_THREAD);
	assert_int_equal(period.marker.stack_id, HEAD_STACK);
	assert_int_equal(found, 300 - 1024 / 9 - 2);
	assert_null(period.launches);
	free_launches(&period);
}

static void another_loop_replaces_one_that_ended(void **unused)
{
	struct launch_period period = {0};
	uint64_t time_ns = 1000;

	(void)unused;
	for (int i = 0; i < 200; i++)
		iterate(&period, time_ns += 100, HEAD_STACK);
	assert_int_equal(period.marker.stack_id, HEAD_STACK);
	for (uint32_t i = 0; i < PERIOD_LAUNCHES_MAX / 9 + 200; i++)
		iterate(&period, time_ns += 100, 30);
	assert_int_equal(period.marker.stack_id, 30);
	free_launches(&period);
}

static void launches_without_order_have_no_iterations(void **unused)
{
	struct launch_period period = {0};
	bool is_new = false;

	(void)unused;
	srandom(2);
	for (uint32_t i = 0; i < 3 * PERIOD_LAUNCHES_MAX; i++) {
		const struct launch_place place = {1 + i % 100, 1 + (uint32_t)random() % 3000};

		assert_int_equal(launch_period_add(&period, place, i + 1, &is_new), 0);
		assert_true(is_new);
		assert_true(period.launch_count < PERIOD_LAUNCHES_MAX);
	}
	assert_false(period.has_failed);
	free_launches(&period);
}

static void triggers_have_a_time_or_a_factor(void **unused)
{
	static const char *const wrong[] = {"",		  "range:a",	   "range:>3x",
					    "range:a>1x", "range:a>x",	   "iteration",
					    "iteration>", "iteration:>3x", "iteration:a>3x",
					    "hang>3x",	  "range:a>3xx",   "error>3x",
					    "range:a>3",  "iteration>1",   "iteration>3x,"};
	static const char text[] =
		"range:a>b,c>2.5x,iteration>3x,range:step 1>20ms,hang>2s,error,oom";
	struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];

	(void)unused;
	assert_int_equal(xt_snapshot_triggers_parse(text, triggers), 6);
	assert_int_equal(triggers[0].kind, XT_TRIGGER_RANGE);
	assert_int_equal(triggers[0].name_bytes, 5);
	assert_true(triggers[0].factor == 2.5);
	assert_int_equal(triggers[1].kind, XT_TRIGGER_ITERATION);
	assert_null(triggers[1].name);
	assert_true(triggers[1].factor == 3);
	assert_int_equal(triggers[2].kind, XT_TRIGGER_RANGE);
	assert_int_equal(triggers[2].name_bytes, 6);
	assert_true(triggers[2].factor == 0);
	assert_int_equal(triggers[2].limit_ns, 20000000);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (xt_snapshot_triggers_parse(wrong[i], triggers) >= 0)
			fail_msg("accepted '%s'", wrong[i]);
}

static void answers_are_no_failures(void **unused)
{
	(void)unused;
	assert_false(xt_call_failed(XT_API_LAUNCH, 0));
	assert_false(xt_call_failed(XT_API_EVENT, XT_RESULT_NOT_READY));
	assert_false(xt_call_failed(XT_API_MODULE, XT_RESULT_NOT_FOUND));
	assert_true(xt_call_failed(XT_API_LAUNCH, XT_RESULT_NOT_FOUND));
	assert_true(xt_call_failed(XT_API_ALLOC, XT_RESULT_OUT_OF_MEMORY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_is_of_the_latest_times),
		cmocka_unit_test(iterations_begin_with_the_same_call_path),
		cmocka_unit_test(another_loop_replaces_one_that_ended),
		cmocka_unit_test(launches_without_order_have_no_iterations),
		cmocka_unit_test(triggers_have_a_time_or_a_factor),
		cmocka_unit_test(answers_are_no_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
