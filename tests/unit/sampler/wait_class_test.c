/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "sampler/process_read.h"
#include "sampler/wait_class.h"

static void knows_calls_that_tell_the_state_alone(void **state)
{
	static const struct {
		long number;
		enum xt_cpu_state state;
	} calls[] = {
		{SYS_nanosleep, XT_CPU_SLEEP},	 {SYS_clock_nanosleep, XT_CPU_SLEEP},
		{SYS_fsync, XT_CPU_IO},		 {SYS_openat, XT_CPU_IO},
		{SYS_io_uring_enter, XT_CPU_IO}, {SYS_flock, XT_CPU_LOCK},
		{SYS_msgrcv, XT_CPU_PROCESS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct wait_rule *rule = wait_rule_find(calls[i].number);

		assert_non_null(rule);
		assert_int_equal(rule->subject, WAIT_FIXED);
		assert_int_equal(rule->state, calls[i].state);
	}
}

static void knows_where_calls_name_what_they_wait_for(void **state)
{
	static const struct {
		long number;
		enum wait_subject subject;
		uint8_t argument;
	} calls[] = {
		{SYS_read, WAIT_DESCRIPTOR, 0},
		{SYS_ioctl, WAIT_DESCRIPTOR, 0},
		{SYS_ppoll, WAIT_DESCRIPTORS, 0},
		{SYS_pselect6, WAIT_SETS, 0},
		{SYS_epoll_pwait, WAIT_EPOLL, 0},
		{SYS_futex, WAIT_FUTEX, 0},
		{SYS_wait4, WAIT_CHILD, 0},
		{SYS_waitid, WAIT_CHILD, 1},
#if defined(__x86_64__)
		{SYS_poll, WAIT_DESCRIPTORS, 0},
		{SYS_select, WAIT_SETS, 0},
		{SYS_epoll_wait, WAIT_EPOLL, 0},
#endif
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct wait_rule *rule = wait_rule_find(calls[i].number);

		assert_non_null(rule);
		assert_int_equal(rule->subject, calls[i].subject);
		assert_int_equal(rule->argument, calls[i].argument);
	}
}

static void has_no_rule_for_other_calls(void **state)
{
	(void)state;
	assert_null(wait_rule_find(-1));
	assert_null(wait_rule_find(SYS_getpid));
	assert_null(wait_rule_find(1000000));
}

static enum xt_cpu_state state_of(enum descriptor_kind kind)
{
	return wait_state_of_descriptors(&kind, 1);
}

static void chooses_the_most_telling_descriptor(void **state)
{
	static const enum descriptor_kind loop[] = {DESCRIPTOR_EVENT, DESCRIPTOR_TIMER,
						    DESCRIPTOR_SOCKET};
	static const enum descriptor_kind queue[] = {DESCRIPTOR_TIMER, DESCRIPTOR_PIPE};
	static const enum descriptor_kind unknown[] = {DESCRIPTOR_OTHER};

	(void)state;
	assert_int_equal(wait_state_of_descriptors(NULL, 0), XT_CPU_SLEEP);
	assert_int_equal(wait_state_of_descriptors(loop, 3), XT_CPU_IO);
	assert_int_equal(wait_state_of_descriptors(queue, 2), XT_CPU_PROCESS);
	assert_int_equal(wait_state_of_descriptors(unknown, 1), XT_CPU_BLOCKED);
	assert_int_equal(state_of(DESCRIPTOR_FILE), XT_CPU_IO);
	assert_int_equal(state_of(DESCRIPTOR_LOCAL_SOCKET), XT_CPU_PROCESS);
	assert_int_equal(state_of(DESCRIPTOR_GPU), XT_CPU_BLOCKED);
}

static void takes_an_uninterruptible_wait_for_io(void **state)
{
	(void)state;
	assert_int_equal(wait_state_outside_calls('D'), XT_CPU_PAGE_FAULT);
	assert_int_equal(wait_state_outside_calls('S'), XT_CPU_BLOCKED);
	assert_int_equal(wait_state_uninterruptible(XT_CPU_BLOCKED), XT_CPU_IO);
	assert_int_equal(wait_state_uninterruptible(XT_CPU_LOCK), XT_CPU_LOCK);
}

static void reads_schedstat(void **state)
{
	struct thread_counts counts;

	(void)state;
	assert_true(thread_counts_parse("346387 71015 2\n", &counts));
	assert_int_equal(counts.run_ns, 346387);
	assert_int_equal(counts.ready_ns, 71015);
	assert_int_equal(counts.switch_count, 2);
	assert_false(thread_counts_parse("", &counts));
	assert_false(thread_counts_parse("1 2", &counts));
	assert_false(thread_counts_parse("text", &counts));
}

static void reads_stat_with_a_misleading_name(void **state)
{
	static const char text[] = "42 (a) R (b) S 7 1 1 0 -1 4194560 10 1 3 0 5 6 0 0 20 0 9 0 "
				   "12345 1000 100 18446744073709551615 1 2 140000000000 0 0\n";
	struct thread_stat stat;

	(void)state;
	assert_true(thread_stat_parse(text, &stat));
	assert_string_equal(stat.name, "a) R (b");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.parent, 7);
	assert_int_equal(stat.fault_count, 13);
	assert_int_equal(stat.thread_count, 9);
	assert_int_equal(stat.start_ticks, 12345);
	assert_int_equal(stat.stack_start, 140000000000);
	assert_false(thread_stat_parse("42 (name) S 7", &stat));
	assert_false(thread_stat_parse("nothing", &stat));
}

static void reads_all_forms_of_syscall(void **state)
{
	struct thread_syscall call;

	(void)state;
	thread_syscall_parse("running\n", &call);
	assert_int_equal(call.kind, SYSCALL_RUNNING);
	thread_syscall_parse("-1 0x7ffe10 0x401000\n", &call);
	assert_int_equal(call.kind, SYSCALL_NONE);
	assert_int_equal(call.stack_pointer, 0x7ffe10);
	assert_int_equal(call.instruction, 0x401000);
	thread_syscall_parse("202 0x10 0x80 0x0 0x0 0x0 0x6 0x7ffe20 0x402000\n", &call);
	assert_int_equal(call.kind, SYSCALL_BLOCKED);
	assert_int_equal(call.number, 202);
	assert_int_equal(call.arguments[0], 0x10);
	assert_int_equal(call.arguments[5], 6);
	assert_int_equal(call.stack_pointer, 0x7ffe20);
	assert_int_equal(call.instruction, 0x402000);
	thread_syscall_parse("202 0x10 0x80\n", &call);
	assert_int_equal(call.kind, SYSCALL_UNKNOWN);
	thread_syscall_parse("", &call);
	assert_int_equal(call.kind, SYSCALL_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_calls_that_tell_the_state_alone),
		cmocka_unit_test(knows_where_calls_name_what_they_wait_for),
		cmocka_unit_test(has_no_rule_for_other_calls),
		cmocka_unit_test(chooses_the_most_telling_descriptor),
		cmocka_unit_test(takes_an_uninterruptible_wait_for_io),
		cmocka_unit_test(reads_schedstat),
		cmocka_unit_test(reads_stat_with_a_misleading_name),
		cmocka_unit_test(reads_all_forms_of_syscall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
