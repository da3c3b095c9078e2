/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of calls that were left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/skipped_calls.h"

static void test_members(void **unused)
{
	static const uint32_t ids[] = {0, 1, 7, 8, 524287, 524288, UINT32_MAX};
	struct skipped_calls set = {0};

	(void)unused;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_false(skipped_calls_has(&set, ids[i]));
	skipped_calls_remove(&set, 7);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		skipped_calls_add(&set, ids[i]);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_true(skipped_calls_has(&set, ids[i]));
	assert_false(skipped_calls_has(&set, 2));
	assert_false(skipped_calls_has(&set, 524289));
	assert_false(skipped_calls_has(&set, UINT32_MAX - 1));
	skipped_calls_remove(&set, 7);
	assert_false(skipped_calls_has(&set, 7));
	assert_true(skipped_calls_has(&set, 8));
	assert_int_equal(set.count, 7); /* of what was ever added */
	skipped_calls_free(&set);
	assert_false(skipped_calls_has(&set, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_members)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
