/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a function on another stack: where it runs, and how signals are handled meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "inject/unwind/stack_walk.h"

static _Alignas(16) uint8_t stack[64 << 10];

static volatile sig_atomic_t handled;
static sigjmp_buf jump;

static void handle(int number)
{
	(void)number;
	handled++;
}

static void jump_out(int number)
{
	(void)number;
	siglongjmp(jump, 1);
}

static void handle_by(int number, void (*handler)(int))
{
	const struct sigaction action = {.sa_handler = handler};

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void note_place(void *place)
{
	*(void **)place = __builtin_frame_address(0);
	errno = EFAULT;
}

static void runs_on_the_given_stack(void **state)
{
	uint8_t *place = NULL;

	(void)state;
	errno = 4711;
	call_on_stack(stack + sizeof(stack), note_place, &place);
	assert_int_equal(errno, 4711);
	assert_in_range((uintptr_t)place, (uintptr_t)stack, (uintptr_t)(stack + sizeof(stack)));
}

static void signal_self(void *handled_before_return)
{
	pthread_kill(pthread_self(), SIGUSR1);
	*(bool *)handled_before_return = handled != 0;
}

static void defers_signals_until_return(void **state)
{
	bool handled_before_return = true;
	sigset_t before, after;

	(void)state;
	handle_by(SIGUSR1, handle);
	handled = 0;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	call_on_stack(stack + sizeof(stack), signal_self, &handled_before_return);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_false(handled_before_return);
	assert_int_equal(handled, 1);
	assert_memory_equal(&before, &after, sizeof(uint64_t));
}

static void fault(void *unused)
{
	(void)unused;
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#else
	__asm__ volatile("udf #0");
#endif
}

static void delivers_faults(void **state)
{
	(void)state;
	handle_by(SIGILL, jump_out);
	if (!sigsetjmp(jump, 1)) {
		call_on_stack(stack + sizeof(stack), fault, NULL);
		fail();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_on_the_given_stack),
		cmocka_unit_test(defers_signals_until_return),
		cmocka_unit_test(delivers_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
