/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses of recording: built from switches in any order, and looked up by time.
 */
#include "unit.h"

#include "merge/read/pauses.h"

static void builds_pauses_from_switches(void **state)
{
	struct pauses pauses = {0};

	(void)state;
	pauses_add(&pauses, 500, false);
	pauses_add(&pauses, 200, true);
	pauses_add(&pauses, 100, false);
	pauses_add(&pauses, 150, false); /* again */
	pauses_add(&pauses, 50, true);	 /* recording was already on */
	pauses_add(&pauses, 300, true);
	pauses_index(&pauses);
	assert_int_equal(pauses.count, 2);
	assert_int_equal(pauses_total_ns(&pauses, 600), 200);
	assert_int_equal(pauses_total_ns(&pauses, 500), 100);
	assert_int_equal(pauses_total_ns(&pauses, 400), 100);
	assert_false(pauses_within(&pauses, 0, 99));
	assert_true(pauses_within(&pauses, 0, 100));
	assert_true(pauses_within(&pauses, 120, 130));
	assert_true(pauses_within(&pauses, 200, 250));
	assert_false(pauses_within(&pauses, 201, 499));
	assert_true(pauses_within(&pauses, 201, 500));
	assert_true(pauses_within(&pauses, UINT64_MAX - 1, UINT64_MAX));
	pauses_free(&pauses);
}

static void accepts_logs_without_pauses(void **state)
{
	struct pauses pauses = {0};

	(void)state;
	pauses_index(&pauses);
	assert_false(pauses_within(&pauses, 0, UINT64_MAX));
	assert_int_equal(pauses_total_ns(&pauses, 600), 0);
	pauses_free(&pauses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds_pauses_from_switches),
		cmocka_unit_test(accepts_logs_without_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
