/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of calls that were not recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/writer/recorder.h"

static void adds_and_removes(void **unused)
{
	static const uint32_t ids[] = {0, 1, 7, 8, 524287, 524288, UINT32_MAX};
	struct suppressed_ids set = {0};

	(void)unused;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_false(suppressed_ids_has(&set, ids[i]));
	suppressed_ids_remove(&set, 7);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		suppressed_ids_add(&set, ids[i]);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_true(suppressed_ids_has(&set, ids[i]));
	assert_false(suppressed_ids_has(&set, 2));
	assert_false(suppressed_ids_has(&set, 524289));
	assert_false(suppressed_ids_has(&set, UINT32_MAX - 1));
	suppressed_ids_remove(&set, 7);
	assert_false(suppressed_ids_has(&set, 7));
	assert_true(suppressed_ids_has(&set, 8));
	assert_int_equal(set.count, 7); /* all ids ever added */
	suppressed_ids_free(&set);
	assert_false(suppressed_ids_has(&set, 8));
}

/* After a thousand million calls, the latest are kept in bounded memory. */
static void limits_memory(void **unused)
{
	const uint32_t page = 1u << 19;
	struct suppressed_ids set = {0};
	uint32_t pages = 0;

	(void)unused;
	for (uint32_t p = 0; p < 4 * SKIPPED_PAGES_MAX; p++)
		suppressed_ids_add(&set, p * page + 5);
	assert_int_equal(set.count, 4 * SKIPPED_PAGES_MAX);
	for (uint32_t p = 0; p < 4 * SKIPPED_PAGES_MAX; p++)
		pages += suppressed_ids_has(&set, p * page + 5);
	assert_int_equal(pages, SKIPPED_PAGES_MAX);
	assert_true(suppressed_ids_has(&set, 3 * SKIPPED_PAGES_MAX * page + 5));
	assert_false(suppressed_ids_has(&set, (3 * SKIPPED_PAGES_MAX - 1) * page + 5));
	suppressed_ids_free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(adds_and_removes),
					   cmocka_unit_test(limits_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
