/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls a thread may be borrowed from, and how they continue.
 */
#include <errno.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "attach/candidates.h"
#include "attach/stub.h"

#define POINTER 0x7000

static void ranks_calls_by_what_a_stop_does(void **unused)
{
	static const struct {
		long number;
		uint64_t arguments[6];
		enum wait_rank rank;
	} cases[] = {
		{SYS_read, {0, POINTER, 1}, WAIT_EXACT},
		{SYS_write, {1, POINTER, 1}, WAIT_UNFIT},
		{SYS_ioctl, {3, 1, POINTER}, WAIT_UNFIT},
		{SYS_rt_sigsuspend, {POINTER, 8}, WAIT_UNFIT},
		{SYS_recvfrom, {3, POINTER, 1, 0}, WAIT_EXACT},
		{SYS_recvfrom, {3, POINTER, 1, MSG_WAITALL}, WAIT_UNFIT},
		{SYS_futex, {POINTER, FUTEX_WAIT_PRIVATE, 0, 0}, WAIT_EXACT},
		{SYS_futex, {POINTER, FUTEX_WAIT_PRIVATE, 0, POINTER}, WAIT_REMAINING},
		{SYS_futex,
		 {POINTER, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, POINTER},
		 WAIT_EXACT},
		{SYS_futex, {POINTER, FUTEX_LOCK_PI, 0, 0}, WAIT_UNFIT},
		{SYS_poll, {POINTER, 1, (uint64_t)-1}, WAIT_EXACT},
		{SYS_poll, {POINTER, 1, 0xffffffff}, WAIT_EXACT},
		{SYS_poll, {POINTER, 1, 100}, WAIT_REMAINING},
		{SYS_ppoll, {POINTER, 1, 0, 0}, WAIT_EXACT},
		{SYS_ppoll, {POINTER, 1, 0, POINTER}, WAIT_UNFIT},
		{SYS_pselect6, {1, POINTER, 0, 0, POINTER, 0}, WAIT_REMAINING},
		{SYS_epoll_wait, {4, POINTER, 1, (uint64_t)-1}, WAIT_EINTR},
		{SYS_epoll_wait, {4, POINTER, 1, 10}, WAIT_REPEATED},
		{SYS_epoll_pwait, {4, POINTER, 1, (uint64_t)-1, POINTER}, WAIT_UNFIT},
		{SYS_clock_nanosleep, {CLOCK_MONOTONIC, TIMER_ABSTIME, POINTER}, WAIT_EXACT},
		{SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, POINTER}, WAIT_REMAINING},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(wait_call_rank(cases[i].number, cases[i].arguments),
				 cases[i].rank);
}

static void repeats_what_the_kernel_would_restart(void **unused)
{
	static const struct {
		int64_t result;
		int kind;
		int64_t next;
	} cases[] = {
		{7, STUB_RESTART_NONE, 7},
		{-EAGAIN, STUB_RESTART_NONE, -EAGAIN},
		{-512, STUB_RESTART_BY_HANDLER, SYS_read},
		{-513, STUB_RESTART_ALWAYS, SYS_read},
		{-514, STUB_RESTART_UNLESS_HANDLED, SYS_read},
		{-EINTR, STUB_RESTART_UNLESS_HANDLED, SYS_read},
		{-516, STUB_RESTART_UNLESS_HANDLED | STUB_RESTART_BLOCK, SYS_restart_syscall},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wait_restart restart =
			wait_call_restart(SYS_read, (uint64_t)cases[i].result);

		assert_int_equal(restart.kind, cases[i].kind);
		assert_int_equal((int64_t)restart.result, cases[i].next);
	}
	assert_true(wait_call_must_repeat(SYS_epoll_wait, (uint64_t)-EINTR));
	assert_false(wait_call_must_repeat(SYS_epoll_wait, (uint64_t)-512));
	assert_false(wait_call_must_repeat(-1, (uint64_t)-EINTR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_calls_by_what_a_stop_does),
		cmocka_unit_test(repeats_what_the_kernel_would_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
