/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and hides the call frame instructions of functions that sign their return address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "inject/unwind/stack_walk.h"

#define NEGATE 0x2d
#define MAX    4

static void finds_between_other_instructions(void **state)
{
	static const uint8_t program[] = {
		0x41,				      /* advance_loc 1 */
		NEGATE, 0x0e,	0xad, 0x01,	      /* def_cfa_offset 173 */
		0x9d,	NEGATE,			      /* offset x29, 45: an operand */
		0x04,	NEGATE, 0,    0,      0,      /* advance_loc4 45 */
		0x10,	0x1d,	2,    NEGATE, NEGATE, /* expression x29, 2 bytes */
		0xde,				      /* restore x30 */
		NEGATE, 0x0c,	0x1f, 0,	      /* def_cfa sp, 0 */
	};
	uintptr_t found[MAX];

	(void)state;
	assert_int_equal(signed_returns_find(program, sizeof(program), found, MAX), 2);
	assert_int_equal(found[0] - (uintptr_t)program, 1);
	assert_int_equal(found[1] - (uintptr_t)program, 18);
}

static void finds_both_instructions(void **state)
{
	static const uint8_t program[] = {0x2c, 0x41, NEGATE};
	uintptr_t found[MAX];

	(void)state;
	assert_int_equal(signed_returns_find(program, sizeof(program), found, MAX), 2);
	assert_int_equal(found[0] - (uintptr_t)program, 0);
	assert_int_equal(found[1] - (uintptr_t)program, 2);
}

static void stops_at_unknown_or_cut_instructions(void **state)
{
	static const uint8_t unknown[] = {NEGATE, 0x01, NEGATE};
	static const uint8_t cut[] = {NEGATE, 0x0f, 0xff, 0xff, 0xff, 0xff,  0xff,
				      0xff,   0xff, 0xff, 0xff, 0x7f, NEGATE};
	static const uint8_t endless[] = {NEGATE, 0x0e, 0x80, 0x80};
	uintptr_t found[MAX];

	(void)state;
	assert_int_equal(signed_returns_find(unknown, sizeof(unknown), found, MAX), 1);
	assert_int_equal(signed_returns_find(cut, sizeof(cut), found, MAX), 1);
	assert_int_equal(signed_returns_find(endless, sizeof(endless), found, MAX), 1);
}

static void keeps_to_the_limit(void **state)
{
	static const uint8_t program[] = {NEGATE, NEGATE, NEGATE};
	uintptr_t found[2];

	(void)state;
	assert_int_equal(signed_returns_find(program, sizeof(program), found, 2), 2);
}

static void hides_only_what_was_found(void **state)
{
	static const uint8_t program[16] = {NEGATE, 1, 2, 3, 4, 5, 6, NEGATE, NEGATE, 9};
	const uintptr_t found[] = {(uintptr_t)program + 7, (uintptr_t)program + 8};
	uint8_t bytes[8];
	uint64_t word;

	(void)state;
	memcpy(&word, program, sizeof(word));
	signed_returns_hide(found, 2, (uintptr_t)program, &word);
	memcpy(bytes, &word, sizeof(word));
	assert_int_equal(bytes[0], NEGATE);
	assert_int_equal(bytes[6], 6);
	assert_int_equal(bytes[7], 0);
	memcpy(&word, program + 8, sizeof(word));
	signed_returns_hide(found, 2, (uintptr_t)program + 8, &word);
	memcpy(bytes, &word, sizeof(word));
	assert_int_equal(bytes[0], 0);
	assert_int_equal(bytes[1], 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_between_other_instructions),
		cmocka_unit_test(finds_both_instructions),
		cmocka_unit_test(stops_at_unknown_or_cut_instructions),
		cmocka_unit_test(keeps_to_the_limit),
		cmocka_unit_test(hides_only_what_was_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
