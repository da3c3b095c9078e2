/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of interpreter frames in this process, of which one refers to any address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "sampler/python_frames.h"

#define THREAD	    UINT64_C(0x1234)
#define INTERPRETER UINT64_C(0x5678)

static struct {
	uint64_t links[2], interpreter, pthread, frame;
} state;
static struct {
	uint64_t previous, code, instruction;
} inner, outer;
static uint64_t runtime[1];

static bool read_chain(struct python_frames *frames, uint64_t previous)
{
	const struct python_place place = {
		.pid = getpid(),
		.runtime = (uintptr_t)runtime,
		.layout = {.state_pthread = offsetof(typeof(state), pthread),
			   .state_frame = offsetof(typeof(state), frame),
			   .frame_previous = offsetof(typeof(inner), previous),
			   .frame_code = offsetof(typeof(inner), code),
			   .frame_instruction = offsetof(typeof(inner), instruction)},
	};
	const struct python_state thread = {
		.address = (uintptr_t)&state, .interpreter = INTERPRETER, .pthread = THREAD};

	state = (typeof(state)){
		.interpreter = INTERPRETER, .pthread = THREAD, .frame = (uintptr_t)&inner};
	inner = (typeof(inner)){.previous = previous, .code = 8, .instruction = 16};
	outer = (typeof(outer)){.code = 24, .instruction = 32};
	return python_frames_read(frames, &place, &thread, 10);
}

static void reads_chain(void **unused)
{
	static struct python_frames frames;

	(void)unused;
	assert_true(read_chain(&frames, (uintptr_t)&outer));
	assert_true(frames.is_whole);
	assert_int_equal(frames.count, 2);
	assert_int_equal(frames.links[0].code, 8);
	assert_int_equal(frames.links[1].instruction, 32);
}

/* The sum of such an address and a size may be a small number. */
static void refuses_any_address(void **unused)
{
	static const uint64_t addresses[] = {1,
					     8,
					     UINT64_MAX,
					     UINT64_MAX & ~UINT64_C(7),
					     UINT64_MAX - 4095,
					     UINT64_MAX - 8191,
					     UINT64_C(1) << 63};
	static struct python_frames frames;

	(void)unused;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		assert_false(read_chain(&frames, addresses[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_chain),
		cmocka_unit_test(refuses_any_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
