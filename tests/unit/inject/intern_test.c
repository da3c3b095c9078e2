/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning: equal keys get one id, others different ones; growing and forgetting keep to the
 * limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "inject/writer/recorder.h"

static void gives_equal_keys_equal_ids(void **unused)
{
	struct intern table = {.keys_limit = 1 << 20};
	bool is_new;

	(void)unused;
	assert_int_equal(intern_id(&table, "a", 1, &is_new), 1);
	assert_true(is_new);
	assert_int_equal(intern_id(&table, "ab", 2, &is_new), 2);
	assert_int_equal(intern_id(&table, "", 0, &is_new), 3);
	assert_int_equal(intern_id(&table, "a", 1, &is_new), 1);
	assert_false(is_new);
	/* Keys that differ in trailing zeros are different. */
	assert_int_equal(intern_id(&table, "a\0", 2, &is_new), 4);
	interner_withdraw(&table.keys);
	assert_int_equal(intern_id(&table, "b", 1, &is_new), 4);
	assert_int_equal(intern_id(&table, "a\0", 2, &is_new), 5);
	intern_forget(&table);
}

static void grows(void **unused)
{
	struct intern table = {.keys_limit = 1 << 20};
	char key[32];
	bool is_new;

	(void)unused;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			int length = snprintf(key, sizeof(key), "key %d", i);

			assert_int_equal(intern_id(&table, key, (size_t)length, &is_new), i + 1);
			assert_int_equal(is_new, round == 0);
		}
	intern_forget(&table);
}

static void forgets_at_the_limit(void **unused)
{
	struct intern table = {.keys_limit = 10000};
	uint8_t key[1000] = {0};
	uint32_t first, again;
	bool is_new;

	(void)unused;
	first = intern_id(&table, key, sizeof(key), &is_new);
	for (uint32_t i = 1; i < 100; i++) {
		memcpy(key, &i, sizeof(i));
		assert_int_equal(intern_id(&table, key, sizeof(key), &is_new), first + i);
		assert_true(table.keys.bytes_used <= 10000);
	}
	/* A forgotten key gets a new id. */
	memset(key, 0, sizeof(key));
	again = intern_id(&table, key, sizeof(key), &is_new);
	assert_true(is_new);
	assert_int_equal(again, first + 100);
	intern_forget(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_equal_keys_equal_ids),
		cmocka_unit_test(grows),
		cmocka_unit_test(forgets_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
