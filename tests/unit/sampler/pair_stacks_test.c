/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native and Python frames that contradict each other must not become one path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sampler/stack_ids.h"

#define LOOP	   0x1000 /* code of the interpreter loop: [LOOP, LOOP + 0x100) */
#define OTHER	   0x5000
#define STACK	   0x7f0000
#define FRAME	   0x100 /* bytes of a native frame */
#define INNERMOST  0x900000
#define STACK_SIZE 0x600

/* Frames: 0 a C function, 1 the loop, 2 a C function, 3 the loop, 4 main, 5 _start. */
static struct native_stack native;
static struct python_stack python;
static uint8_t bytes[STACK_SIZE];
static struct thread_registers registers;
static struct stack_copy copy = {.address = STACK, .bytes = bytes, .byte_count = STACK_SIZE};
static struct pair_input in;
static struct paired_stacks out;

static bool is_loop(const void *context, uint64_t address)
{
	(void)context;
	return address >= LOOP && address < LOOP + 0x100;
}

static void put_word(size_t offset, uint64_t word)
{
	memcpy(bytes + offset, &word, sizeof(word));
}

static int set_up(void **state)
{
	static const uint64_t codes[] = {OTHER, LOOP, OTHER, LOOP, OTHER, OTHER};

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	native = (struct native_stack){.frame_count = 6};
	for (uint32_t i = 0; i < 6; i++) {
		native.frames[i] = codes[i] + 0x10;
		native.stack_pointers[i] = STACK + i * FRAME;
	}
	python = (struct python_stack){
		.frame_count = 3,
		.innermost = INNERMOST,
		.frames = {{.anchor = STACK + FRAME + 8},
			   {.anchor = STACK + FRAME + 8},
			   {.anchor = STACK + 3 * FRAME + 8}},
	};
	put_word(FRAME + 0x40, INNERMOST);
	registers = (struct thread_registers){0};
	in = (struct pair_input){.native = &native,
				 .python = &python,
				 .read = PYTHON_READ_OK,
				 .registers = &registers,
				 .copy = &copy,
				 .is_loop = is_loop};
	return 0;
}

static void expect(bool has_native, bool has_python, unsigned flags)
{
	pair_stacks(&in, &out);
	assert_int_equal(out.has_native, has_native);
	assert_int_equal(out.has_python, has_python);
	assert_int_equal(out.flags, flags);
}

static void places_frames_in_their_loops(void **state)
{
	(void)state;
	expect(true, true, 0);
	assert_int_equal(out.places[0], 1);
	assert_int_equal(out.places[1], 1);
	assert_int_equal(out.places[2], 3);
}

static void drops_native_frames_of_another_moment(void **state)
{
	(void)state;
	put_word(FRAME + 0x40, INNERMOST + 8);
	expect(false, true, XT_CPU_NATIVE_DROPPED);
	assert_int_equal(out.places[2], 0);
	/* A word behind the innermost loop's frame proves nothing. */
	put_word(2 * FRAME + 0x40, INNERMOST);
	expect(false, true, XT_CPU_NATIVE_DROPPED);
}

static void finds_the_innermost_frame_in_a_register(void **state)
{
	(void)state;
	put_word(FRAME + 0x40, 0);
	registers.value[THREAD_R12] = INNERMOST;
	expect(false, true, XT_CPU_NATIVE_DROPPED);
	registers.known = 1u << THREAD_R12;
	expect(true, true, 0);
}

static void trusts_frames_of_a_thread_that_did_not_run(void **state)
{
	(void)state;
	put_word(FRAME + 0x40, 0);
	in.is_still = true;
	expect(true, true, 0);
}

static void drops_native_frames_if_an_anchor_is_elsewhere(void **state)
{
	(void)state;
	python.frames[2].anchor = STACK + 2 * FRAME + 8;
	expect(false, true, XT_CPU_NATIVE_DROPPED);
	python.frames[2].anchor = STACK - 8;
	expect(false, true, XT_CPU_NATIVE_DROPPED);
}

static void drops_native_frames_with_another_number_of_loops(void **state)
{
	(void)state;
	python.frame_count = 2;
	expect(false, true, XT_CPU_NATIVE_DROPPED);
	/* The outer loops may be missing if the walk ended early. */
	python.frame_count = 3;
	native.frame_count = 3;
	expect(false, true, XT_CPU_NATIVE_DROPPED);
	native.flags = XT_STACK_TRUNCATED;
	expect(true, true, 0);
	assert_int_equal(out.places[2], 3);
}

static void drops_native_frames_without_any_loop(void **state)
{
	(void)state;
	native.flags = XT_STACK_TRUNCATED;
	native.frame_count = 1;
	expect(false, true, XT_CPU_NATIVE_DROPPED);
	in.is_still = true;
	expect(true, true, 0);
	assert_int_equal(out.places[0], 1);
}

static void marks_python_frames_that_changed(void **state)
{
	(void)state;
	in.read = PYTHON_READ_CHANGED;
	expect(false, true, XT_CPU_NO_PYTHON | XT_CPU_NATIVE_DROPPED);
	assert_true(out.python_changed);
	/* No frame at the outer end stayed the same. */
	python.frame_count = 0;
	expect(true, false, XT_CPU_NO_PYTHON);
	in.native = NULL;
	expect(false, false, XT_CPU_NO_NATIVE | XT_CPU_NO_PYTHON);
	in.read = PYTHON_READ_NONE;
	expect(false, false, XT_CPU_NO_NATIVE);
}

static void keeps_native_frames_without_python(void **state)
{
	(void)state;
	native.frame_count = 1;
	python.frame_count = 0;
	in.read = PYTHON_READ_CHANGED;
	expect(true, false, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(places_frames_in_their_loops, set_up),
		cmocka_unit_test_setup(drops_native_frames_of_another_moment, set_up),
		cmocka_unit_test_setup(finds_the_innermost_frame_in_a_register, set_up),
		cmocka_unit_test_setup(trusts_frames_of_a_thread_that_did_not_run, set_up),
		cmocka_unit_test_setup(drops_native_frames_if_an_anchor_is_elsewhere, set_up),
		cmocka_unit_test_setup(drops_native_frames_with_another_number_of_loops, set_up),
		cmocka_unit_test_setup(drops_native_frames_without_any_loop, set_up),
		cmocka_unit_test_setup(marks_python_frames_that_changed, set_up),
		cmocka_unit_test_setup(keeps_native_frames_without_python, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
