/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sampler/cpu_log.h"
#include "xtrace/log_format.h"

#define MS 1000000ull

static const struct xt_row_cpu_sample running = {.time_ns = 1, .state = XT_CPU_RUNNING, .stack = 7};
static const struct xt_row_cpu_sample blocked = {.time_ns = 1, .state = XT_CPU_LOCK, .stack = 8};

static uint64_t sum(const struct cpu_row_list *list)
{
	uint64_t total = 0;

	for (size_t i = 0; i < list->count; i++)
		total += list->rows[i].weight_ns;
	return total;
}

static void add_running(struct thread_rows *rows, uint64_t time_ns, struct cpu_row_list *list)
{
	struct xt_row_cpu_sample row = running;

	row.time_ns = time_ns;
	thread_rows_add_running(rows, &row, rows->run_ns, list);
}

static void add_blocked(struct thread_rows *rows, uint64_t time_ns, bool has_run,
			struct cpu_row_list *list)
{
	struct xt_row_cpu_sample row = blocked;

	row.time_ns = time_ns;
	thread_rows_add_blocked(rows, &row, has_run, list);
}

static void splits_time_by_what_the_kernel_counted(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 3, 100 * MS);
	thread_rows_advance(&rows, 110 * MS, 4 * MS, 1 * MS);
	assert_int_equal(rows.run_ns, 4 * MS);
	assert_int_equal(rows.ready_ns, 1 * MS);
	assert_int_equal(rows.off_ns, 5 * MS);
	thread_rows_end(&rows, &list);
	assert_int_equal(sum(&list), 10 * MS);
	free(list.rows);
}

static void merges_a_wait_without_a_run(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 3, 0);
	thread_rows_advance(&rows, 10 * MS, 0, 0);
	add_blocked(&rows, 10 * MS, true, &list);
	thread_rows_advance(&rows, 20 * MS, 0, 0);
	thread_rows_extend(&rows, 20 * MS);
	thread_rows_advance(&rows, 30 * MS, 0, 0);
	add_blocked(&rows, 30 * MS, false, &list);
	assert_int_equal(list.count, 0);
	thread_rows_end(&rows, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.rows[0].thread, 3);
	assert_int_equal(list.rows[0].count, 3);
	assert_int_equal(list.rows[0].time_ns, 10 * MS);
	assert_int_equal(list.rows[0].span_ns, 20 * MS);
	assert_int_equal(list.rows[0].weight_ns, 30 * MS);
	free(list.rows);
}

static void separates_waits_with_a_run_between(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 1, 0);
	thread_rows_advance(&rows, 10 * MS, 0, 0);
	add_blocked(&rows, 10 * MS, true, &list);
	thread_rows_advance(&rows, 20 * MS, 1 * MS, 0);
	add_blocked(&rows, 20 * MS, true, &list);
	thread_rows_end(&rows, &list);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.rows[1].weight_ns, 9 * MS);
	/* The run had no stack. */
	assert_int_equal(list.rows[2].state, XT_CPU_RUNNING);
	assert_int_equal(list.rows[2].stack, 0);
	assert_int_equal(list.rows[2].weight_ns, 1 * MS);
	assert_int_equal(sum(&list), 20 * MS);
	free(list.rows);
}

static void carries_cpu_time_to_the_next_running_row(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 1, 0);
	thread_rows_advance(&rows, 10 * MS, 2 * MS, 0);
	add_blocked(&rows, 10 * MS, true, &list);
	thread_rows_advance(&rows, 20 * MS, 3 * MS, 0);
	add_running(&rows, 20 * MS, &list);
	assert_int_equal(rows.last.weight_ns, 5 * MS);
	/* 7 ms off the CPU wait for the next blocked row. */
	thread_rows_advance(&rows, 30 * MS, 0, 0);
	add_blocked(&rows, 30 * MS, true, &list);
	assert_int_equal(rows.last.weight_ns, 17 * MS);
	thread_rows_end(&rows, &list);
	assert_int_equal(sum(&list), 30 * MS);
	free(list.rows);
}

static void gives_the_end_of_a_wait_to_its_row(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 1, 0);
	thread_rows_advance(&rows, 10 * MS, 0, 0);
	add_blocked(&rows, 10 * MS, true, &list);
	thread_rows_advance(&rows, 20 * MS, 1 * MS, 0);
	thread_rows_end_wait(&rows);
	assert_int_equal(rows.last.weight_ns, 19 * MS);
	assert_int_equal(rows.last.span_ns, 0);
	free(list.rows);
}

static void splits_a_long_wait(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 3, 0);
	thread_rows_split(&rows, &list);
	assert_int_equal(list.count, 0);
	thread_rows_advance(&rows, 10 * MS, 0, 0);
	add_blocked(&rows, 10 * MS, false, &list);
	thread_rows_advance(&rows, 20 * MS, 0, 0);
	thread_rows_extend(&rows, 20 * MS);
	thread_rows_split(&rows, &list);
	thread_rows_split(&rows, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.rows[0].weight_ns, 20 * MS);
	thread_rows_advance(&rows, 40 * MS, 0, 0);
	thread_rows_extend(&rows, 40 * MS);
	thread_rows_end(&rows, &list);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.rows[1].time_ns, 20 * MS);
	assert_int_equal(list.rows[1].span_ns, 20 * MS);
	assert_int_equal(list.rows[1].weight_ns, 20 * MS);
	assert_int_equal(list.rows[1].stack, blocked.stack);
	free(list.rows);
}

static void keeps_the_end_of_a_wait_that_was_split(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 3, 0);
	thread_rows_advance(&rows, 10 * MS, 0, 0);
	add_blocked(&rows, 10 * MS, false, &list);
	thread_rows_split(&rows, &list);
	thread_rows_advance(&rows, 15 * MS, 2 * MS, 0);
	thread_rows_end_wait(&rows);
	add_running(&rows, 15 * MS, &list);
	thread_rows_end(&rows, &list);
	assert_int_equal(sum(&list), 15 * MS);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.rows[1].weight_ns, 3 * MS);
	assert_int_equal(list.rows[1].state, blocked.state);
	assert_int_equal(list.rows[1].stack, blocked.stack);
	free(list.rows);
}

static void accepts_run_time_that_is_counted_late(void **state)
{
	struct cpu_row_list list = {0};
	struct thread_rows rows;

	(void)state;
	thread_rows_start(&rows, 1, 0);
	/* More than has passed, then less. */
	thread_rows_advance(&rows, 10 * MS, 13 * MS, 0);
	assert_int_equal(rows.run_ns, 10 * MS);
	thread_rows_advance(&rows, 20 * MS, 7 * MS, 0);
	assert_int_equal(rows.run_ns, 20 * MS);
	/* A wait for a CPU is counted when it ends. */
	thread_rows_advance(&rows, 30 * MS, 0, 0);
	assert_int_equal(rows.off_ns, 10 * MS);
	thread_rows_advance(&rows, 40 * MS, 2 * MS, 18 * MS);
	assert_int_equal(rows.off_ns, 0);
	assert_int_equal(rows.ready_ns, 18 * MS);
	add_running(&rows, 40 * MS, &list);
	assert_int_equal(list.rows[0].state, XT_CPU_READY);
	assert_int_equal(list.rows[0].stack, running.stack);
	thread_rows_end(&rows, &list);
	assert_int_equal(sum(&list), 40 * MS);
	free(list.rows);
}

/* Times and counts that do not fit each other must not lose or invent time. */
static void keeps_the_sum_for_any_input(void **state)
{
	struct cpu_row_list list = {0};
	uint64_t now_ns = 5 * MS;
	struct thread_rows rows;

	(void)state;
	srand(1);
	thread_rows_start(&rows, 1, now_ns);
	for (int i = 0; i < 10000; i++) {
		now_ns += (uint64_t)rand() % (20 * MS);
		thread_rows_advance(&rows, now_ns, (uint64_t)rand() % (15 * MS),
				    (uint64_t)rand() % (10 * MS));
		if (rand() % 3 == 0)
			add_running(&rows, now_ns, &list);
		else
			add_blocked(&rows, now_ns, rand() % 2, &list);
	}
	thread_rows_end(&rows, &list);
	assert_int_equal(sum(&list), now_ns - 5 * MS);
	for (size_t i = 1; i < list.count; i++)
		assert_true(list.rows[i].time_ns >= list.rows[i - 1].time_ns);
	free(list.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_time_by_what_the_kernel_counted),
		cmocka_unit_test(merges_a_wait_without_a_run),
		cmocka_unit_test(separates_waits_with_a_run_between),
		cmocka_unit_test(carries_cpu_time_to_the_next_running_row),
		cmocka_unit_test(gives_the_end_of_a_wait_to_its_row),
		cmocka_unit_test(splits_a_long_wait),
		cmocka_unit_test(keeps_the_end_of_a_wait_that_was_split),
		cmocka_unit_test(accepts_run_time_that_is_counted_late),
		cmocka_unit_test(keeps_the_sum_for_any_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
