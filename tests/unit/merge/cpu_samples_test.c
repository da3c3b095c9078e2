/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of host threads: the time that each represents, and the search by thread and time.
 */
#include "unit.h"

#include <stdlib.h>

#include "merge/read/cpu_samples.h"

#define REACH_NS 75

static void add(struct cpu_samples *samples, uint32_t tid, uint64_t first_ns, uint64_t last_ns)
{
	samples->list = realloc(samples->list, (samples->count + 1) * sizeof(*samples->list));
	assert_non_null(samples->list);
	samples->list[samples->count++] =
		(struct cpu_sample){.first_ns = first_ns, .last_ns = last_ns, .tid = tid};
}

static struct cpu_cover cover_of(const struct cpu_samples *samples, uint32_t tid, size_t number)
{
	const struct cpu_thread *thread = cpu_samples_of(samples, tid);

	return samples->list[thread->first + number].cover;
}

static void finds_rows_of_threads(void **state)
{
	struct cpu_samples samples = {0};
	const struct cpu_thread *thread;

	(void)state;
	cpu_samples_sort(&samples, REACH_NS);
	assert_null(cpu_samples_of(&samples, 7));
	add(&samples, 9, 300, 300);
	add(&samples, 7, 200, 250);
	add(&samples, 9, 100, 150);
	cpu_samples_sort(&samples, REACH_NS);
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

static void speaks_for_the_time_before_that_its_weight_accounts_for(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 1000, 1000);
	add(&samples, 7, 2000, 2100);
	samples.list[1].weight_ns = 700 + 100;
	cpu_samples_sort(&samples, REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 0).from_ns, 1000 - REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 0).until_ns, 1000);
	assert_int_equal(cover_of(&samples, 7, 1).from_ns, 1000);
	assert_int_equal(cover_of(&samples, 7, 1).until_ns, 2100 + REACH_NS);
	cpu_samples_free(&samples);
}

static void samples_of_one_moment_divide_the_time_before(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 1000, 1000);
	add(&samples, 7, 2000, 2000);
	add(&samples, 7, 2000, 2300);
	samples.list[1].weight_ns = 250;
	samples.list[2].weight_ns = 750 + 300;
	cpu_samples_sort(&samples, REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 1).from_ns, 1000);
	assert_int_equal(cover_of(&samples, 7, 1).until_ns, 1250);
	assert_int_equal(cover_of(&samples, 7, 2).from_ns, 1250);
	assert_int_equal(cover_of(&samples, 7, 2).until_ns, 2300 + REACH_NS);
	cpu_samples_free(&samples);
}

static void leaves_a_hole_where_samples_are_missing(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 1000, 1000);
	add(&samples, 7, 2000, 2000);
	cpu_samples_sort(&samples, REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 0).until_ns, 1000 + REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 1).from_ns, 2000 - REACH_NS);
	cpu_samples_free(&samples);
}

static void begins_no_earlier_than_time_0(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	add(&samples, 7, 10, 10);
	cpu_samples_sort(&samples, REACH_NS);
	assert_int_equal(cover_of(&samples, 7, 0).from_ns, 0);
	cpu_samples_free(&samples);
}

static void check_covers(const struct cpu_samples *samples)
{
	for (size_t t = 0; t < samples->thread_count; t++) {
		const struct cpu_thread *thread = &samples->threads[t];
		uint64_t until_ns = 0, last_ns = 0;

		for (size_t r = thread->first; r < thread->end; r++) {
			struct cpu_cover cover = samples->list[r].cover;

			assert_true(cover.from_ns >= until_ns);
			assert_true(cover.from_ns <= samples->list[r].first_ns);
			assert_true(cover.until_ns >= cover.from_ns);
			assert_true(samples->list[r].last_ns >= last_ns);
			until_ns = cover.until_ns;
			last_ns = samples->list[r].last_ns;
		}
	}
}

/* The row that a search of all rows finds. */
static size_t slow_covering(const struct cpu_samples *samples, const struct cpu_thread *thread,
			    uint64_t time_ns)
{
	size_t row = thread->first;

	while (row < thread->end && samples->list[row].cover.until_ns <= time_ns)
		row++;
	return row;
}

static void covers_are_disjoint(void **state)
{
	struct cpu_samples samples = {0};
	uint64_t now_ns = 1000;

	(void)state;
	srand(1);
	for (int i = 0; i < 2000; i++) {
		uint64_t first_ns = now_ns + (uint64_t)rand() % 200;

		now_ns = first_ns + (uint64_t)rand() % 3 * 50;
		add(&samples, 1 + (uint32_t)rand() % 3, first_ns, now_ns);
	}
	cpu_samples_sort(&samples, REACH_NS);
	check_covers(&samples);
	cpu_samples_free(&samples);
}

/* No sampler writes such rows. */
static void covers_of_overlapping_rows_are_disjoint(void **state)
{
	struct cpu_samples samples = {0};

	(void)state;
	srand(2);
	for (int i = 0; i < 2000; i++) {
		uint64_t first_ns = (uint64_t)rand() % 1500 * 10;

		add(&samples, 1 + (uint32_t)rand() % 3, first_ns,
		    first_ns + (rand() % 4 ? (uint64_t)rand() % 300 : UINT64_C(1) << 62));
		samples.list[i].weight_ns = rand() % 9 ? (uint64_t)rand() % 400 : UINT64_MAX;
	}
	cpu_samples_sort(&samples, REACH_NS);
	check_covers(&samples);
	for (uint64_t time_ns = 0; time_ns < 16000; time_ns += 5)
		for (size_t t = 0; t < samples.thread_count; t++)
			assert_int_equal(
				cpu_samples_covering(&samples, &samples.threads[t], time_ns),
				slow_covering(&samples, &samples.threads[t], time_ns));
	cpu_samples_free(&samples);
}

static void names_each_state(void **state)
{
	(void)state;
	for (int s = 0; s < XT_CPU_STATES; s++) {
		assert_non_null(cpu_state_name((enum xt_cpu_state)s));
		if (s != XT_CPU_RUNNING)
			assert_int_equal(cpu_sample_label((enum xt_cpu_state)s, true)[0], '[');
	}
	assert_null(cpu_sample_label(XT_CPU_RUNNING, true));
	assert_null(cpu_sample_label(XT_CPU_RUNNING, true));
	assert_string_equal(cpu_sample_label(XT_CPU_RUNNING, false), CPU_STACK_UNKNOWN);
	assert_string_equal(cpu_sample_label(XT_CPU_LOCK, true), "[lock]");
	assert_string_equal(cpu_sample_label(XT_CPU_LOCK, false), "[lock]");
	assert_true(cpu_is_label(CPU_STACK_UNKNOWN));
	assert_true(cpu_is_label("[lock]"));
	assert_false(cpu_is_label("lock"));
	assert_true(cpu_state_runs(XT_CPU_PAGE_FAULT));
	assert_false(cpu_state_runs(XT_CPU_LOCK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_rows_of_threads),
		cmocka_unit_test(speaks_for_the_time_before_that_its_weight_accounts_for),
		cmocka_unit_test(samples_of_one_moment_divide_the_time_before),
		cmocka_unit_test(leaves_a_hole_where_samples_are_missing),
		cmocka_unit_test(begins_no_earlier_than_time_0),
		cmocka_unit_test(covers_are_disjoint),
		cmocka_unit_test(covers_of_overlapping_rows_are_disjoint),
		cmocka_unit_test(names_each_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
