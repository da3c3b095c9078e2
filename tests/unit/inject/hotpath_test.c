/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot-path rules at run time: a launch of a known thread and stack allocates nothing, takes no
 * lock and makes no system call. A seccomp filter kills the process at any system call; malloc and
 * locks are counted by replacements.
 */
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/cupti/activity.h"
#include "inject/capture/callbacks.h"
#include "inject/capture/ring.h"
#include "inject/capture/thread_buffer.h"
#include "inject/runtime/loader.h"
#include "inject/capture/stack_capture.h"
#include "inject/cupti/activity_pool.h"
#include "inject/unwind/stack_walk.h"

#define LAUNCHES 200000

static uint64_t forbidden_calls;

/* The replacement counts and calls the library's function. */
#define COUNTED(result, name, parameters, arguments)                                               \
	result name parameters;                                                                    \
	result name parameters                                                                     \
	{                                                                                          \
		static result(*next) parameters;                                                   \
		if (!next)                                                                         \
			next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                      \
		forbidden_calls++;                                                                 \
		return next arguments;                                                             \
	}

#define COUNTED_MEMORY(result, name, parameters, arguments)                                        \
	result __libc_##name parameters;                                                           \
	result name parameters                                                                     \
	{                                                                                          \
		forbidden_calls++;                                                                 \
		return __libc_##name arguments;                                                    \
	}

/* Not found by dlsym(), which allocates memory itself. */
COUNTED_MEMORY(void *, malloc, (size_t bytes), (bytes))
COUNTED_MEMORY(void *, calloc, (size_t count, size_t bytes), (count, bytes))
COUNTED_MEMORY(void *, realloc, (void *memory, size_t bytes), (memory, bytes))
COUNTED_MEMORY(void *, memalign, (size_t alignment, size_t bytes), (alignment, bytes))
COUNTED_MEMORY(void, free, (void *memory), (memory))

COUNTED(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
COUNTED(int, posix_memalign, (void **memory, size_t alignment, size_t bytes),
	(memory, alignment, bytes))
COUNTED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
COUNTED(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
COUNTED(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
COUNTED(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
COUNTED(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
COUNTED(int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock))
COUNTED(int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
COUNTED(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
COUNTED(int, pthread_once, (pthread_once_t * once, void (*routine)(void)), (once, routine))
COUNTED(int, sem_post, (sem_t * semaphore), (semaphore))
COUNTED(int, sem_wait, (sem_t * semaphore), (semaphore))
COUNTED(int, dl_iterate_phdr, (int (*callback)(struct dl_phdr_info *, size_t, void *), void *data),
	(callback, data))

static void launch(uint32_t correlation_id)
{
	int32_t result = 0;
	uint64_t slot = 0;
	struct cupti_callback_data data = {
		.site = XT_CUPTI_API_ENTER,
		.correlation_data = &slot,
		.correlation_id = correlation_id,
		.return_value = &result,
	};

	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &data);
	data.site = XT_CUPTI_API_EXIT;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &data);
	ring_free(current_thread_buffer, ring_written(current_thread_buffer));
}

static __attribute__((noinline)) void launch_deep(uint32_t id, int depth)
{
	if (depth)
		launch_deep(id, depth - 1);
	else
		launch(id);
	__asm__ volatile("");
}

static void round_of_launches(uint32_t count)
{
	for (uint32_t i = 1; i <= count; i++)
		launch_deep(i, (int)(i % 40));
}

/* The buffer callbacks. The pool has free buffers, so none is created. */
static void round_of_buffers(void)
{
	uint8_t *buffer;
	size_t bytes, max_records;

	activity_requested(&buffer, &bytes, &max_records);
	activity_completed(NULL, 0, buffer, bytes, 0);
}

static int forbid_system_calls(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum { CHILD_CLEAN = 0, CHILD_COUNTED = 1, CHILD_NO_SECCOMP = 77 };

static void in_child(void)
{
	activity_refill(2);
	/* Both rounds run from one place in the code, so that the second knows all stacks. */
	for (int warm = 0; warm < 2; warm++) {
		if (warm && forbid_system_calls())
			_exit(CHILD_NO_SECCOMP);
		forbidden_calls = 0;
		errno = 4711;
		round_of_launches(warm ? LAUNCHES : 400);
		round_of_buffers();
	}
	syscall(SYS_exit_group, forbidden_calls || errno != 4711 ? CHILD_COUNTED : CHILD_CLEAN);
}

static void warm_launch_is_free_of_locks_and_malloc(void **unused)
{
	pid_t child = fork();
	int status;

	(void)unused;
	if (!child)
		in_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NO_SECCOMP)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHILD_CLEAN);
}

/* Checks that the replacements are used. Otherwise the next test would detect nothing. */
static void replacements_count(void **unused)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	void *memory;

	(void)unused;
	pthread_mutex_lock(&mutex); /* now each replacement has found the original */
	pthread_mutex_unlock(&mutex);
	forbidden_calls = 0;
	memory = malloc(10);
	memory = realloc(memory, 20);
	free(memory);
	assert_int_equal(forbidden_calls, 3);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	assert_int_equal(forbidden_calls, 5);
}

static int set_up(void **unused)
{
	char why[512];

	(void)unused;
	loader_watch_begin();
	if (stack_walk_open("/nonexistent", why, sizeof(why)) || stack_walk_begin())
		return -1;
	loader_watch_poll();
	stack_capture_audit_interval = 0;
	callbacks_active = true;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replacements_count),
		cmocka_unit_test(warm_launch_is_free_of_locks_and_malloc),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
