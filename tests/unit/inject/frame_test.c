/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames in unusual places: signal handlers on the thread's stack or an alternate one, coroutines
 * on a static stack, and small stacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "support.h"

static _Thread_local volatile int sink;
static uint64_t launch_frame; /* frame of the last launch() call */

static NOINLINE void launch(void)
{
	struct fake_call call;

	launch_frame = (uint64_t)__builtin_return_address(0);
	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

#define STACK_BYTES (256 << 10)

/* The instruction pointer of an interrupted thread, and an instruction that raises SIGILL. */
#if defined(__x86_64__)
#define INTERRUPTED_AT(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define TRAP			"ud2\n"
#define TRAP_BYTES		2
#else
#define INTERRUPTED_AT(context) ((context)->uc_mcontext.pc)
#define TRAP			"udf #0\n"
#define TRAP_BYTES		4
#endif

static struct taken_call from_handler;
static uint64_t interrupted_at, interrupted_frame;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)info;
	interrupted_at = (uint64_t)INTERRUPTED_AT((ucontext_t *)context);
	launch();
	assert_true(ring_take(&from_handler));
	sink += number;
}

/* Two places to interrupt, in frames of equal size. */
static NOINLINE void interrupted(int place)
{
	interrupted_frame = (uint64_t)__builtin_return_address(0);
	if (place)
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGUSR1);
	else
		__asm__ volatile(TRAP "1:" ::: "memory");
	sink++;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	on_signal(number, info, context);
	INTERRUPTED_AT((ucontext_t *)context) += TRAP_BYTES; /* skips it */
}

/* Exactly one frame is exact, at the interrupted instruction, and the walk continues after it. */
static void check_signal_frames(void)
{
	unsigned exact = 0;
	bool found = false;

	assert_int_equal(from_handler.flags & XT_STACK_TRUNCATED, 0);
	assert_int_equal(from_handler.frames[1], launch_frame);
	for (uint32_t i = 0; i < from_handler.frame_count; i++) {
		uint64_t frame = from_handler.frames[i];

		if (frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_EXACT) {
			exact++;
			assert_int_equal(frame & XT_FRAME_VALUE_MASK, interrupted_at);
		}
		found |= exact && frame == interrupted_frame;
	}
	assert_int_equal(exact, 1);
	assert_true(found);
}

static void handle_signals(int flags)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags};

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGILL, &trap, NULL);
	for (int i = 0; i < 8; i++) {
		interrupted(i & 1);
		check_signal_frames();
	}
}

static void walks_through_signal_frame(void **unused)
{
	(void)unused;
	handle_signals(0);
}

static void *on_alternate_stack(void *memory)
{
	stack_t stack = {.ss_sp = memory, .ss_size = STACK_BYTES};
	stack_t none = {.ss_flags = SS_DISABLE};

	sigaltstack(&stack, NULL);
	handle_signals(SA_ONSTACK);
	sigaltstack(&none, NULL);
	return NULL;
}

/* The alternate stack is above the thread's stack, then below it. */
static void walks_alternate_stacks(void **unused)
{
	char *memory = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	assert_ptr_not_equal(memory, MAP_FAILED);
	for (int above = 0; above < 2; above++) {
		char *thread_stack = memory + (above ? 0 : STACK_BYTES);
		char *handler_stack = memory + (above ? STACK_BYTES : 0);
		pthread_attr_t attributes;
		pthread_t thread;

		pthread_attr_init(&attributes);
		pthread_attr_setstack(&attributes, thread_stack, STACK_BYTES);
		assert_int_equal(
			pthread_create(&thread, &attributes, on_alternate_stack, handler_stack), 0);
		pthread_join(thread, NULL);
		pthread_attr_destroy(&attributes);
	}
	munmap(memory, 2 * STACK_BYTES);
}

static char static_stack[STACK_BYTES] __attribute__((aligned(64)));
static ucontext_t main_context, coroutine_context;

static NOINLINE void path_a(void)
{
	launch();
	sink++;
}

static NOINLINE void path_b(void)
{
	launch();
	sink += 2;
}

static void check_path(void)
{
	struct taken_call call;

	assert_true(ring_take(&call));
	assert_int_equal(call.frames[1], launch_frame);
}

static void coroutine_main(void)
{
	static void (*const volatile paths[])(void) = {path_a, path_b};

	for (int i = 0; i < 12; i++) {
		paths[i & 1]();
		check_path();
	}
	swapcontext(&coroutine_context, &main_context);
}

static void run_coroutine_on(void *stack)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = STACK_BYTES;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine_main, 0);
	swapcontext(&main_context, &coroutine_context);
}

/*
 * Both paths launch with equal stack pointers; only words of the stack distinguish them. Those are
 * in the data of the module whose unwind tables are read.
 */
static void walks_coroutine_in_static_memory(void **unused)
{
	void *heap_stack = malloc(STACK_BYTES);

	(void)unused;
	run_coroutine_on(static_stack);
	run_coroutine_on(heap_stack);
	free(heap_stack);
}

#define SMALL_STACK_BYTES (128 << 10) /* PTHREAD_STACK_MIN of aarch64 */
#define FIRST_CALL_BYTES  (16 << 10)  /* limit for a thread's first call, including libunwind */

static unsigned char *first_entered, *lowest;

static NOINLINE void *first_launch(void *stack)
{
	unsigned char *byte = stack;

	first_entered = __builtin_frame_address(0);
	launch();
	while (*byte == 0xa5)
		byte++;
	lowest = byte;
	return NULL;
}

static void fits_a_small_stack(void **unused)
{
	unsigned char *stack = mmap(NULL, SMALL_STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	(void)unused;
	assert_ptr_not_equal(stack, MAP_FAILED);
	memset(stack, 0xa5, SMALL_STACK_BYTES);
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, SMALL_STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attributes, first_launch, stack), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	assert_in_range(first_entered - lowest, 1, FIRST_CALL_BYTES);
	munmap(stack, SMALL_STACK_BYTES);
}

static int set_up(void **unused)
{
	(void)unused;
	return callbacks_set_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_through_signal_frame),
		cmocka_unit_test(walks_alternate_stacks),
		cmocka_unit_test(walks_coroutine_in_static_memory),
		cmocka_unit_test(fits_a_small_stack),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
