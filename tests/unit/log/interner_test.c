/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each byte string gets one number, from 1 on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "log/base/hash_table.h"

static void gives_equal_keys_equal_numbers(void **state)
{
	struct interner keys = {0};
	size_t bytes;
	bool is_new;

	(void)state;
	assert_int_equal(interner_find(&keys, "x", 1), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 10000; i++) {
			/* Lengths of 0 to 4 bytes. */
			assert_int_equal(
				interner_id(&keys, &i, i ? sizeof(i) - (i % 2) : 0, &is_new),
				i + 1);
			assert_int_equal(is_new, round == 0);
		}
	}
	for (uint32_t i = 1; i < 10000; i++)
		assert_memory_equal(interner_at(&keys, i + 1, &bytes), &i, 3);
	interner_free(&keys);
	assert_int_equal(keys.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(gives_equal_keys_equal_numbers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
