/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of Python support that need no interpreter: line tables of all formats, layouts by version,
 * and whose state is entered. tests/integration/python checks that they are correct.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/python/python_runtime.h"
#include "python/python_layout.h"

struct expected_line {
	int64_t offset;
	uint32_t line; /* 0: none */
	size_t used;   /* bytes of the table that are read */
};

static void check_lines(enum python_line_format format, const uint8_t *table, size_t table_bytes,
			const struct expected_line *expected, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t used;

		assert_int_equal(
			python_line(format, table, table_bytes, 10, expected[i].offset, &used),
			expected[i].line);
		assert_int_equal(used, expected[i].used);
	}
}
#define CHECK_LINES(format, table, expected)                                                       \
	check_lines(format, table, sizeof(table), expected, sizeof(expected) / sizeof(*(expected)))

static void reads_lnotab(void **unused)
{
	/* Line 11 from byte 6 on, 9 from 8 on; 255 bytes later, in two steps, line 9 + 127 + 3. */
	static const uint8_t table[] = {6, 1, 2, 0xfe, 255, 0, 1, 127, 0, 3};
	static const struct expected_line expected[] = {{-1, 10, 0},	{0, 10, 2},	{5, 10, 2},
							{6, 11, 4},	{8, 9, 6},	{262, 9, 6},
							{264, 139, 10}, {9999, 139, 10}};

	(void)unused;
	CHECK_LINES(PYTHON_LNOTAB, table, expected);
}

static void reads_linetable(void **unused)
{
	static const uint8_t table[] = {4, 0, 2, 0x80, 0, 5, 6, 0xfd};
	static const struct expected_line expected[] = {{-2, 10, 0}, {0, 10, 2}, {2, 10, 2},
							{4, 0, 4},   {6, 12, 8}, {10, 12, 8},
							{12, 0, 8}};

	(void)unused;
	CHECK_LINES(PYTHON_LINETABLE, table, expected);
}

static void reads_locations(void **unused)
{
	static const uint8_t table[] = {
		0x80 | 1 << 3 | 1,  0x23,		 /* 2 units, same line, short */
		0x80 | 11 << 3 | 0, 4,	  8,		 /* 1 unit, next line */
		0x80 | 15 << 3 | 2,			 /* 3 units without a line */
		0x80 | 13 << 3 | 0, 0x41, 0x03,		 /* 1 unit: signed, -(64 * 3 + 1) / 2 */
		0x80 | 14 << 3 | 7, 0x48, 0x0c, 0, 1, 2, /* 8 units, 388 lines further */
	};
	static const struct expected_line expected[] = {{-2, 10, 0},
							{0, 10, 2},
							{2, 10, 2},
							{4, 11, 5},
							{6, 0, 6},
							{10, 0, 6},
							{12, 11u - 96u, 9},
							{14, 11 - 96 + 388, 15},
							{28, 11 - 96 + 388, 15},
							{30, 0, 15}};

	(void)unused;
	CHECK_LINES(PYTHON_LOCATIONS, table, expected);
}

/* Random tables, each in front of an unreadable page. */
static void tolerates_random_tables(void **unused)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	assert_true(memory != MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	srandom(1);
	for (int round = 0; round < 30000; round++) {
		size_t bytes = (size_t)random() % 40, used;
		uint8_t *table = memory + page - bytes;

		for (size_t i = 0; i < bytes; i++)
			table[i] = (uint8_t)random();
		python_line((enum python_line_format)(round % 3), table, bytes, 1,
			    random() % 600 - 10, &used);
		assert_in_range(used, 0, bytes);
	}
	munmap(memory, 2 * page);
}

static bool is_known(uint32_t version, const void *runtime)
{
	struct python_layout layout;
	char why[128] = "";
	int rc = python_layout_find(version, runtime, &layout, why, sizeof(why));

	assert_true(rc == 0 || (rc == -EINVAL && why[0]));
	return rc == 0;
}

static void selects_layout_by_version(void **unused)
{
	const uint32_t final = 0xf0, candidate = 0xc1, beta = 0xb4;
	static uint64_t published[128];

	(void)unused;
	memcpy(published, "xdebugpy", 8);
	for (uint32_t minor = 9; minor <= 12; minor++)
		assert_true(is_known(PYTHON_VERSION(3, minor) | 5 << 8 | final, NULL));
	assert_true(is_known(PYTHON_VERSION(3, 10), NULL)); /* unknown release */
	assert_false(is_known(0, published));
	assert_false(is_known(PYTHON_VERSION(3, 8) | final, published));
	assert_false(is_known(PYTHON_VERSION(3, 15) | final, published));
	assert_false(is_known(PYTHON_VERSION(4, 0) | final, published));
	for (uint32_t minor = 13; minor <= 14; minor++) {
		published[1] = PYTHON_VERSION(3, minor) | 1 << 8 | candidate;
		assert_true(is_known((uint32_t)published[1], published));
		/* The published version is another one. */
		assert_false(is_known(PYTHON_VERSION(3, minor) | 2 << 8 | final, published));
		published[1] = PYTHON_VERSION(3, minor) | beta;
		assert_false(is_known((uint32_t)published[1], published));
	}
	published[0]++;
	published[1] = PYTHON_VERSION(3, 13) | final;
	assert_false(is_known((uint32_t)published[1], published));
}

/* Indexes of words in CPython's _Py_DebugOffsets. */
static void detects_free_threaded_build(void **unused)
{
	static const struct {
		uint32_t minor;
		uint8_t instructions, copies, index, locals; /* word indexes */
		uint16_t copies_at, index_at, kind_bit;
	} rows[] = {{13, 43, 0, 0, 32, 0, 0, 2}, {14, 48, 49, 38, 35, 208, 76, 8}};
	static uint64_t published[128];

	(void)unused;
	memcpy(published, "xdebugpy", 8);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (uint64_t is_free_threaded = 0; is_free_threaded < 2; is_free_threaded++) {
			uint32_t version = PYTHON_VERSION(3, rows[r].minor) | 4 << 8 | 0xf0;
			struct python_layout layout;
			char why[128];

			published[1] = version;
			published[2] = is_free_threaded;
			published[rows[r].instructions] = 216;
			published[rows[r].copies ? rows[r].copies : 127] = 208;
			published[rows[r].index ? rows[r].index : 127] = 76;
			published[rows[r].locals] = 80;
			assert_int_equal(
				python_layout_find(version, published, &layout, why, sizeof(why)),
				0);
			assert_int_equal(layout.code_instructions, 216);
			assert_int_equal(layout.code_tlbc,
					 is_free_threaded ? rows[r].copies_at : 0);
			assert_int_equal(layout.frame_tlbc_index,
					 is_free_threaded ? rows[r].index_at : 0);
			assert_int_equal(layout.str_kind_bit,
					 is_free_threaded ? rows[r].kind_bit : 2);
			/* Its objects and dicts have another layout, so modules are not read. */
			assert_int_equal(layout.frame_locals, is_free_threaded ? 0 : 80);
		}
}

/* The number that CPython keeps is pthread_self(), which need not be the thread pointer. */
static void enters_only_the_threads_own_state(void **unused)
{
	static uint64_t state[3] = {0, 0, 7};
	const struct python_runtime runtime = {.layout = {.state_thread_id = 8, .state_frame = 16}};
	struct python_thread thread = {.state = (uintptr_t)state};

	(void)unused;
	state[1] = (uintptr_t)pthread_self();
	assert_true(python_enter(&runtime, NULL, 0, &thread));
	assert_int_equal(thread.innermost, 7);
	state[1]++;
	assert_false(python_enter(&runtime, NULL, 0, &thread));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_lnotab),
		cmocka_unit_test(reads_linetable),
		cmocka_unit_test(reads_locations),
		cmocka_unit_test(tolerates_random_tables),
		cmocka_unit_test(selects_layout_by_version),
		cmocka_unit_test(detects_free_threaded_build),
		cmocka_unit_test(enters_only_the_threads_own_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
