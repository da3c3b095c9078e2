/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that wait at places where a thread may be borrowed, and where it must not.
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/candidates.h"
#include "sampler/process_modules.h"
#include "sampler/process_read.h"
#include "sampler/remote_unwind.h"

static int ends[2];
static void (*raising)(void);

static void wait_here(void)
{
	char byte;

	(void)!read(ends[0], &byte, 1);
}

static void wait_in_handler(int number)
{
	(void)number;
	wait_here();
}

static int wait_in_callback(struct dl_phdr_info *info, size_t bytes, void *context)
{
	(void)info, (void)bytes, (void)context;
	wait_here();
	return 1;
}

static void handler(void)
{
	signal(SIGUSR1, wait_in_handler);
	raise(SIGUSR1);
}

static void handler_on_other_stack(void)
{
	static char memory[65536];
	const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	const struct sigaction action = {.sa_handler = wait_in_handler, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

/* An allocator has these names, whatever library it is in. */
__attribute__((noipa)) void *pvalloc(size_t bytes)
{
	if (raising)
		raising();
	wait_here();
	return (void *)bytes;
}

static void plain(void)
{
	wait_here();
}

static void callback(void)
{
	dl_iterate_phdr(wait_in_callback, NULL);
}

static void allocator(void)
{
	free(pvalloc(1));
}

static void interrupted_allocator(void)
{
	raising = handler;
	allocator();
}

static void allocator_below_other_stack(void)
{
	raising = handler_on_other_stack;
	allocator();
}

static void exit_handler(void)
{
	atexit(wait_here);
	exit(0);
}

static void fork_handler(void)
{
	pthread_atfork(wait_here, NULL, NULL);
	fork();
}

static void other_allocator(void)
{
	void *library = dlopen(ALLOCATOR, RTLD_NOW | RTLD_LOCAL);
	void (*refill)(int) = library ? (void (*)(int))dlsym(library, "refill") : NULL;

	if (refill)
		refill(ends[0]);
}

static void unreadable_file(void)
{
	other_allocator();
}

/* Imitates a deleted file, which only root can read. */
static void hide_allocator(struct process_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		if (!strcmp(modules->list[i].path, ALLOCATOR)) {
			close(modules->list[i].elf->fd);
			modules->list[i].elf->fd = -1;
		}
}

static void mutex(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
}

static pid_t start_child(void (*place)(void))
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		place();
		_exit(0);
	}
	return child;
}

/* Once the child waits in this system call. */
static void find_registers(pid_t child, long number, struct thread_registers *registers)
{
	int no_budget = 0;
	struct thread_files files = {.pid = child, .tid = child, .budget = &no_budget};
	const struct timespec nap = {.tv_nsec = 1000000};
	struct thread_syscall call = {0};

	/* The loader reads files before. */
	for (int i = 0; i < 5000 && (call.kind != SYSCALL_BLOCKED || call.number != number ||
				     (number == SYS_read && (int)call.arguments[0] != ends[0]));
	     i++) {
		nanosleep(&nap, NULL);
		thread_files_syscall(&files, &call);
	}
	assert_int_equal(call.kind, SYSCALL_BLOCKED);
	*registers = (struct thread_registers){.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	registers->value[THREAD_RIP] = call.instruction;
	registers->value[THREAD_RSP] = call.stack_pointer;
}

static void refuses_what_may_hold_locks(void **unused)
{
	static const struct {
		void (*place)(void);
		enum stack_safety safety;
		const char *why;
	} cases[] = {
		{plain, STACK_SAFE, ""},
		{mutex, STACK_WAITS_FOR_LOCK, ""},
		{other_allocator, STACK_UNSAFE, "allocator of"},
		{unreadable_file, STACK_UNSAFE, "deleted"},
		{handler, STACK_UNSAFE, "signal handler"},
		{callback, STACK_UNSAFE, "dl_iterate_phdr"},
		{interrupted_allocator, STACK_INTERRUPTED, "signal handler, and is in pvalloc"},
		{allocator_below_other_stack, STACK_INTERRUPTED,
		 "signal handler, and is in pvalloc"},
		{allocator, STACK_UNSAFE, "pvalloc"},
		{exit_handler, STACK_UNSAFE, "exit"},
		{fork_handler, STACK_UNSAFE, "fork"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct process_modules modules = {0};
		struct thread_registers registers;
		enum stack_safety safety;
		char why[256] = "";
		pid_t child;

		assert_int_equal(pipe(ends), 0);
		child = start_child(cases[i].place);
		find_registers(child, cases[i].place == mutex ? SYS_futex : SYS_read, &registers);
		assert_int_equal(process_modules_refresh(&modules, child), 0);
		if (cases[i].place == unreadable_file)
			hide_allocator(&modules);
		safety = safe_stack_check(&modules, child, &registers,
					  &(struct why){why, sizeof(why)});
		if (safety != cases[i].safety || !strstr(why, cases[i].why))
			fail_msg("case %zu: %d '%s'", i, safety, why);
		process_modules_free(&modules);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(ends[0]);
		close(ends[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(refuses_what_may_hold_locks)};
	char why[256];
	int failed;

	if (remote_unwind_open("", why, sizeof(why)))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remote_unwind_close();
	return failed;
}
