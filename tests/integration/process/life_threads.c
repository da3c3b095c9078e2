/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases with threads, stacks and contexts of all kinds.
 */
#include "life.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static void *launch_once(void *unused)
{
	gpu_enter_thread();
	gpu_launch(1);
	return unused;
}

#define SHORT_THREADS 10000
#define AT_ONCE	      8

/* The tracer has a ring for each running thread, not for each thread ever started. */
static int short_threads(char **unused)
{
	unsigned failed = 0;

	(void)unused;
	gpu_begin();
	for (unsigned i = 0; i < SHORT_THREADS / AT_ONCE; i++) {
		pthread_t threads[AT_ONCE];

		for (int t = 0; t < AT_ONCE; t++)
			failed += pthread_create(&threads[t], NULL, launch_once, NULL) != 0;
		for (int t = 0; t < AT_ONCE; t++)
			pthread_join(threads[t], NULL);
	}
	tell("%u threads failed\n", failed);
	return 0;
}

/* Starts as many threads as possible. All launch, then wait for the last one. */
static pthread_barrier_t all_launched;

static void *launch_and_wait(void *unused)
{
	gpu_enter_thread();
	gpu_launch(2);
	pthread_barrier_wait(&all_launched);
	gpu_launch(1);
	return unused;
}

/* Each needs a ring and an activity buffer at the same time: more than the memory budget. */
static void *wait_and_launch(void *unused)
{
	gpu_enter_thread();
	pthread_barrier_wait(&all_launched);
	for (int i = 0; i < 10; i++)
		gpu_launch_alone();
	return unused;
}

#define MANY_MAX 600

static int run_many(unsigned count, void *(*main_function)(void *))
{
	pthread_t threads[MANY_MAX];
	pthread_attr_t attributes;

	gpu_begin();
	pthread_barrier_init(&all_launched, NULL, count);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], &attributes, main_function, NULL))
			return 1;
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	tell("done\n");
	return 0;
}

static int many_threads(char **arguments)
{
	return arguments[0] ? run_many(MANY_MAX, wait_and_launch) : run_many(300, launch_and_wait);
}

/* The smallest stack that a thread can have. Few programs launch on less. */
static int tiny_stacks(char **unused)
{
	pthread_attr_t attributes;
	pthread_t thread;

	(void)unused;
	gpu_begin();
	pthread_attr_init(&attributes);
	for (int i = 0; i < 20; i++) {
		if (pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN + 8192) ||
		    pthread_create(&thread, &attributes, launch_once, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	tell("done\n");
	return 0;
}

static volatile sig_atomic_t handled, is_in_cuda;

static void launch_in_handler(int number)
{
	int saved_errno = errno;

	(void)number;
	if (!is_in_cuda) { /* no handler may enter CUDA twice */
		gpu_launch_alone();
		handled++;
	}
	errno = saved_errno;
}

/* Signal handlers that launch on a stack of their own, wherever their thread is outside of CUDA. */
static int launching_handlers(char **unused)
{
	static uint8_t handler_stack[64 << 10];
	const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
	struct sigaction action = {.sa_handler = launch_in_handler,
				   .sa_flags = SA_ONSTACK | SA_RESTART};
	const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	stack_t now;

	(void)unused;
	gpu_begin();
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 2000 || handled < 20; i++) {
		is_in_cuda = 1;
		gpu_launch_alone();
		is_in_cuda = 0;
		for (volatile int wait = 0; wait < 2000; wait++)
			;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	gpu_launch(1);
	sigaltstack(NULL, &now);
	tell("the handler has run; its stack is %s\n",
	     now.ss_sp == handler_stack && !now.ss_flags ? "as it was" : "another");
	return 0;
}

/* Coroutines: stacks on the heap, left and resumed. */

#define COROUTINES	40
#define COROUTINE_BYTES (64 << 10)
#define TURNS		20

static ucontext_t scheduler, coroutines[COROUTINES];
static unsigned ended;

static __attribute__((noinline)) void descend(int number, int depth)
{
	volatile char room[64];

	room[0] = (char)depth;
	if (depth) {
		descend(number, depth - 1);
		room[1] = room[0];
		return;
	}
	for (int turn = 0; turn < TURNS; turn++) {
		gpu_launch(1);
		swapcontext(&coroutines[number], &scheduler);
	}
}

static void run_coroutine(int number)
{
	descend(number, number % 10);
	ended++;
}

static int run_coroutines(char **unused)
{
	(void)unused;
	gpu_begin();
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&coroutines[i]);
		/* Some stacks are on the heap, some in their own pages, some reused. */
		coroutines[i].uc_stack.ss_sp =
			i % 2 ? malloc(COROUTINE_BYTES)
			      : mmap(NULL, COROUTINE_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		coroutines[i].uc_stack.ss_size = COROUTINE_BYTES;
		coroutines[i].uc_link = &scheduler;
		makecontext(&coroutines[i], (void (*)(void))run_coroutine, 1, i);
	}
	for (int turn = 0; turn <= TURNS; turn++)
		for (int i = 0; i < COROUTINES; i++)
			swapcontext(&scheduler, &coroutines[i]);
	for (int i = 0; i < COROUTINES; i++)
		if (i % 2)
			free(coroutines[i].uc_stack.ss_sp);
		else
			munmap(coroutines[i].uc_stack.ss_sp, COROUTINE_BYTES);
	gpu_launch(1);
	tell("%u coroutines ended\n", ended);
	return 0;
}

/* Contexts. */

static int several_contexts(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(3);
	for (int i = 0; i < 3; i++)
		tell("context %d: %d\n", i, gpu_launch_in_new_context(4));
	gpu_launch(2);
	return 0;
}

/* Releases and retains the primary context, and resets the device, between launches. */
static int renewed_contexts(char **unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		gpu_begin();
		gpu_launch(4);
		tell("release %d\n", gpu_release());
	}
	gpu_begin();
	gpu_launch(1);
	tell("reset %d\n", gpu_reset());
	gpu_begin();
	gpu_launch(1);
	return 0;
}

static void *rest(void *unused)
{
	usleep(1000);
	return unused;
}

/* CUDA starts long after the process. */
static int late_cuda(char **unused)
{
	(void)unused;
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, rest, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	gpu_begin();
	gpu_launch(5);
	return 0;
}

/* Cancellation was requested. It must take effect where the program waits, not in the tracer. */
static void *launch_cancelled(void *launched)
{
	int state;

	pthread_cancel(pthread_self());
	cuInit(0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	gpu_begin(); /* the simulator waits here */
	pthread_setcancelstate(state, NULL);
	for (int i = 0; i < 2000; i++, ++*(unsigned *)launched)
		gpu_launch_alone();
	pthread_testcancel();
	return launched;
}

static int cancelled(char **unused)
{
	unsigned launched = 0;
	pthread_t thread;
	void *result;

	(void)unused;
	pthread_create(&thread, NULL, launch_cancelled, &launched);
	pthread_join(thread, &result);
	tell("%u launches, %s\n", launched,
	     result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
	gpu_enter_thread();
	gpu_launch(1);
	return 0;
}

static void *end_last(void *unused)
{
	usleep(50000);
	tell("the last\n");
	return unused;
}

/* This handler needs as much stack as any thread of the program has. It also uses signals. */
static void at_exit_of_the_last(void)
{
	volatile char much[1 << 20];
	sigset_t blocked;

	much[0] = 1;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	tell(much[0] && !sigismember(&blocked, SIGTERM) ? "at exit\n" : "blocked at exit\n");
}

/* The process ends with its last thread, whichever that is. */
static int ends_with_last_thread(char **arguments)
{
	pthread_t thread;

	atexit(at_exit_of_the_last);
	cuInit(0);
	if (!arguments[0])
		pthread_exit(NULL);
	pthread_create(&thread, NULL, end_last, NULL);
	pthread_exit(NULL);
}

static pthread_t launching_thread;
static atomic_uint *launched_in_all; /* in a file named by the argument */
static atomic_bool is_over;

static void *launch_until_over(void *unused)
{
	gpu_enter_thread();
	for (; !is_over; ++*launched_in_all)
		gpu_launch_alone();
	return unused;
}

static void end_what_launches(void)
{
	is_over = true;
	pthread_join(launching_thread, NULL);
}

/* Another thread launches until an exit handler, registered before the tracer started, stops it. */
static int exit_while_launching(char **arguments)
{
	int file = open(arguments[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (ftruncate(file, sizeof(*launched_in_all)))
		return 98;
	launched_in_all =
		mmap(NULL, sizeof(*launched_in_all), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (launched_in_all == MAP_FAILED)
		return 98;
	*launched_in_all = 0;
	atexit(end_what_launches);
	gpu_begin();
	pthread_create(&launching_thread, NULL, launch_until_over, NULL);
	while (*launched_in_all < 1000)
		usleep(1000);
	exit(5);
}

static void *load_without_main(void *unused)
{
	wait_for_state_of_main_thread('Z');
	gpu_enter_thread();
	gpu_load("late_kernel");
	gpu_launch(5);
	exit(4);
	return unused;
}

static void *begin_without_main(void *unused)
{
	wait_for_state_of_main_thread('Z');
	gpu_begin();
	gpu_launch(5);
	_exit(5);
	return unused;
}

/*
 * main_has_ended [begin]: the main thread ends first. Then /proc shows no memory for the process
 * id.
 */
static int main_has_ended(char **arguments)
{
	pthread_t thread;

	if (!arguments[0])
		gpu_begin();
	pthread_create(&thread, NULL, arguments[0] ? begin_without_main : load_without_main, NULL);
	pthread_exit(NULL);
}

/* Unusual ends, with a message of the tracer pending. */

static atomic_bool is_cancelled;

static void *leave_cancelled(void *how)
{
	gpu_enter_thread();
	gpu_launch(5);
	while (!is_cancelled)
		;
	if (how)
		exit(5);
	_exit(5);
}

/* Cancels the thread that ends the process. The cancellation must not take effect in the tracer. */
static int exit_cancelled(char **arguments)
{
	pthread_t thread;

	gpu_begin();
	pthread_create(&thread, NULL, leave_cancelled, arguments[0]);
	pthread_cancel(thread);
	is_cancelled = true;
	pthread_join(thread, NULL);
	tell("the thread was cancelled\n");
	return 7;
}

static void (*leave)(int);

static void leave_in_handler(int number)
{
	leave(number == SIGUSR1 ? 5 : 6);
}

/* exit_on_small_stack BYTES: stack of the handler, in addition to the kernel's frame. */
static int exit_on_small_stack(char **arguments)
{
	struct sigaction action = {.sa_handler = leave_in_handler, .sa_flags = SA_ONSTACK};
	const size_t most = 64 << 10;
	const size_t of_kernel = getauxval(AT_MINSIGSTKSZ); /* 0 before Linux 5.14 */
	stack_t stack = {.ss_size = (of_kernel ? of_kernel : 4096) + (size_t)atoi(arguments[0])};

	gpu_begin();
	gpu_launch(5);
	/* Bind it now: the loader would need much stack to find it. */
	leave = (void (*)(int))dlsym(RTLD_DEFAULT, "_exit");
	/* The memory below must not be touched. */
	stack.ss_sp =
		(char *)mmap(NULL, 2 * most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + most;
	if (mprotect(stack.ss_sp, most, PROT_READ | PROT_WRITE) || sigaltstack(&stack, NULL))
		return 1;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	return 1;
}

const struct life thread_lives[] = {
	{"exit_while_launching", exit_while_launching},
	{"cancelled", cancelled},
	{"last_thread", ends_with_last_thread},
	{"main_has_ended", main_has_ended},
	{"_exit_cancelled", exit_cancelled},
	{"_exit_on_small_stack", exit_on_small_stack},
	{"short_threads", short_threads},
	{"many_threads", many_threads},
	{"tiny_stacks", tiny_stacks},
	{"launching_handlers", launching_handlers},
	{"coroutines", run_coroutines},
	{"several_contexts", several_contexts},
	{"renewed_contexts", renewed_contexts},
	{"late_cuda", late_cuda},
	{NULL, NULL},
};
