/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of allocations, compared with an array.
 */
#include "support.h"

#include <errno.h>

#include "log/base/allocations.h"

#define ADDRESSES 3000
#define STEPS	  100000

static void remembers_what_was_not_freed(void **state)
{
	uint64_t random = test_seed(), bytes_of[ADDRESSES] = {0}, count = 0;
	struct xt_allocations table = {0};
	struct xt_allocation old;

	(void)state;
	for (uint64_t step = 1; step <= STEPS; step++) {
		uint64_t address = random_next(&random) % ADDRESSES;
		struct xt_allocation new = {
			.address = address << 9, .bytes = step, .time_ns = step};

		if (random_next(&random) % 2) {
			assert_int_equal(xt_allocations_add(&table, &new, &old),
					 bytes_of[address] != 0);
			count += !bytes_of[address];
			bytes_of[address] = step;
		} else {
			assert_int_equal(xt_allocations_remove(&table, new.address, step, &old),
					 bytes_of[address] != 0);
			if (bytes_of[address])
				assert_int_equal(old.bytes, bytes_of[address]);
			count -= bytes_of[address] != 0;
			bytes_of[address] = 0;
		}
		assert_int_equal(table.count, count);
	}
	xt_allocations_free(&table);
}

static void ignores_a_free_that_is_older_than_the_allocation(void **state)
{
	struct xt_allocation new = {.address = 1, .time_ns = 20}, old;
	struct xt_allocations table = {0};

	(void)state;
	assert_false(xt_allocations_remove(&table, 1, 10, &old));
	assert_int_equal(xt_allocations_add(&table, &new, &old), 0);
	assert_false(xt_allocations_remove(&table, 1, 10, &old));
	assert_true(xt_allocations_remove(&table, 1, 20, &old));
	xt_allocations_free(&table);
}

static void refuses_allocations_beyond_the_limit(void **state)
{
	struct xt_allocations table = {0};
	struct xt_allocation new = {0}, old;

	(void)state;
	for (; new.address < XT_ALLOCATIONS_MAX; new.address++)
		assert_int_equal(xt_allocations_add(&table, &new, &old), 0);
	assert_int_equal(xt_allocations_add(&table, &new, &old), -ENOSPC);
	xt_allocations_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remembers_what_was_not_freed),
		cmocka_unit_test(ignores_a_free_that_is_older_than_the_allocation),
		cmocka_unit_test(refuses_allocations_beyond_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
