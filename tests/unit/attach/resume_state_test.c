/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes below the stack of a borrowed thread.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attach/borrow.h"
#include "attach/stub.h"

#define STACK UINT64_C(0x7ffd12345678)

static struct thread_state state;
static uint8_t bytes[RESUME_IMAGE_BYTES_MAX];
static struct resume_image image = {.bytes = bytes};
static char why[256];

static int make(int kind)
{
	static const uint8_t contents[100] = {1};
	const struct wait_restart restart = {kind, 7};

	state.registers.rsp = STACK;
	state.registers.rip = 0x401002;
	state.registers.rbx = 0x1111;
	state.extended_bytes = 8192;
	return resume_image_make(&image, &state, &restart, contents, sizeof(contents), 0x10000,
				 0x20000, &(struct why){why, sizeof(why)});
}

static uint64_t word(uint64_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + (image.registers.r14 - image.address) + offset, sizeof(value));
	return value;
}

static void stays_below_the_red_zone_and_aligned(void **unused)
{
	uint64_t end;

	(void)unused;
	assert_int_equal(make(STUB_RESTART_ALWAYS), 0);
	end = image.address + image.byte_count;
	assert_true(end <= STACK - 128 && end > STACK - 512);
	assert_int_equal(image.registers.rsp % 16, 0);
	assert_true(image.registers.rsp <= image.address);
	assert_int_equal(word(STUB_UC_FPSTATE) % 64, 0);
	/* The stub uses the red zone of the context, which must not be the contents. */
	assert_true(image.registers.r14 - 128 >= image.registers.r13 + image.registers.r15);
	assert_int_equal(image.registers.orig_rax, UINT64_MAX);
	assert_int_equal(image.registers.rip, 0x20000);
}

static void returns_to_the_call_or_behind_it(void **unused)
{
	(void)unused;
	assert_int_equal(make(STUB_RESTART_ALWAYS), 0);
	assert_int_equal(word(STUB_UC_RIP), 0x401000);
	assert_int_equal(word(STUB_UC_RAX), 7);
	assert_int_equal(word(STUB_UC_RSP), STACK);
	assert_int_equal(make(STUB_RESTART_NONE), 0);
	assert_int_equal(word(STUB_UC_RIP), 0x401002);
	assert_int_equal(word(STUB_UC_RAX), 7);
}

static void refuses_registers_in_use_that_it_cannot_restore(void **unused)
{
	const uint64_t amx_data = 1 << 18;

	(void)unused;
	memcpy(state.extended + 512, &amx_data, sizeof(amx_data));
	assert_int_equal(make(STUB_RESTART_ALWAYS), -ENOTSUP);
	assert_non_null(strstr(why, "AMX"));
	memset(state.extended + 512, 0, sizeof(amx_data));
	assert_int_equal(make(STUB_RESTART_ALWAYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays_below_the_red_zone_and_aligned),
		cmocka_unit_test(returns_to_the_call_or_behind_it),
		cmocka_unit_test(refuses_registers_in_use_that_it_cannot_restore),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
