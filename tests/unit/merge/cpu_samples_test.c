/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of host threads: the time that each speaks for, and the search by thread and time.
 */
#include "unit.h"

#include <stdlib.h>

#include "merge/read/cpu_samples.h"

#define REACH_NS 75

static void add(struct cpu_samples *samples, uint32_t tid, uint64_t first_ns, uint64_t last_ns)
{
	samples->rows = realloc(samples->rows, (samples->count + 1) * sizeof(*samples->rows));
	assert_non_null(samples->rows);
	samples->rows[samples->count++] =
		(struct cpu_sample){.first_ns = first_ns, .last_ns = last_ns, .tid = tid};
}

static struct cpu_cover cover_of(const struct cpu_samples *samples, uint32_t tid, size_t number)
{
	const struct cpu_thread *thread = cpu_samples_of(samples, tid);

	return cpu_samples_cover(samples, thread, thread->first + number, REACH_NS);
}

static void finds_rows_of_threads(void **state)
{
	struct cpu_samples samples = {0};
	const struct cpu_thread *thread;

	(void)state;
	assert_int_equal(cpu_samples_sort(&samples), 0);
	assert_null(cpu_samples_of(&samples, 7));
	add(&samples, 9, 300, 300);
	add(&samples, 7, 200, 250);
	add(&samples, 9, 100, 150);
	assert_int_equal(cpu_samples_sort(&samples), 0);
	assert_int_equal(samples.thread_count, 2);
	assert_null(cpu_samples_of(&samples, 8));
	thread = cpu_samples_of(&samples, 9);
	assert_int_equal(thread->end - thread->first, 2);
	assert_int_equal(cpu_samples_at(&samples, thread, 0), thread->first);
	assert_int_equal(cpu_samples_at(&samples, thread, 150), thread->first);
	assert_int_equal(cpu_samples_at(&samples, thread, 151), thread->first + 1);
	assert_int_equal(cpu_samples_at(&samples, thread, 301), thread->end);
	cpu_samples_free(&samples);
}

static void reaches_back_to_the_sample_before(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 1000, 1000);
	add(&samples, 7, 1101, 1200);
	samples.rows[1].weight_ns = 200;
	assert_int_equal(cpu_samples_sort(&samples), 0);
	assert_int_equal(cover_of(&samples, 7, 0).from_ns, 1000 - REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 0).until_ns, 1000);
	assert_int_equal(cover_of(&samples, 7, 1).from_ns, 1000);
	assert_int_equal(cover_of(&samples, 7, 1).until_ns, 1200 + REACH_NS);
	cpu_samples_free(&samples);
}

static void leaves_a_hole_where_samples_are_missing(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 1000, 1000);
	add(&samples, 7, 2000, 2000);
	assert_int_equal(cpu_samples_sort(&samples), 0);
	assert_int_equal(cover_of(&samples, 7, 0).until_ns, 1000 + REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 1).from_ns, 2000 - REACH_NS);
	cpu_samples_free(&samples);
}

static void begins_no_earlier_than_time_0(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 10, 10);
	assert_int_equal(cpu_samples_sort(&samples), 0);
	assert_int_equal(cover_of(&samples, 7, 0).from_ns, 0);
	cpu_samples_free(&samples);
}

/* Rows of one thread do not overlap unless the log is damaged. */
static void covers_are_disjoint(void **state)
{
	struct cpu_samples samples = {0};
	uint64_t now_ns = 1000;

	(void)state;
	srand(1);
	for (int i = 0; i < 2000; i++) {
		uint64_t first_ns = now_ns + 1 + (uint64_t)rand() % 200;

		now_ns = first_ns + (uint64_t)rand() % 3 * 50;
		add(&samples, 1 + (uint32_t)rand() % 3, first_ns, now_ns);
	}
	assert_int_equal(cpu_samples_sort(&samples), 0);
	for (size_t t = 0; t < samples.thread_count; t++) {
		const struct cpu_thread *thread = &samples.threads[t];
		uint64_t until_ns = 0;

		for (size_t r = thread->first; r < thread->end; r++) {
			struct cpu_cover cover = cpu_samples_cover(&samples, thread, r, REACH_NS);

			assert_true(cover.from_ns >= until_ns);
			assert_true(cover.from_ns <= samples.rows[r].first_ns);
			assert_true(cover.until_ns >= samples.rows[r].last_ns);
			until_ns = cover.until_ns;
		}
	}
	cpu_samples_free(&samples);
}

static void names_each_state(void **state)
{
	(void)state;
	for (int s = 0; s < XT_CPU_STATES; s++) {
		assert_non_null(cpu_state_name((enum xt_cpu_state)s));
		if (s != XT_CPU_RUNNING)
			assert_int_equal(cpu_state_label((enum xt_cpu_state)s)[0], '[');
	}
	assert_null(cpu_state_label(XT_CPU_RUNNING));
	assert_true(cpu_state_runs(XT_CPU_PAGE_FAULT));
	assert_false(cpu_state_runs(XT_CPU_LOCK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_rows_of_threads),
		cmocka_unit_test(reaches_back_to_the_sample_before),
		cmocka_unit_test(leaves_a_hole_where_samples_are_missing),
		cmocka_unit_test(begins_no_earlier_than_time_0),
		cmocka_unit_test(covers_are_disjoint),
		cmocka_unit_test(names_each_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
