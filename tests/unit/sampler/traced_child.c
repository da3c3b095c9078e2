/* SPDX-License-Identifier: Apache-2.0 */
#include "traced_child.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "call_paths.h"

#define FUNCTION_BYTES_MAX 8192u /* of a function that records the stack */

#define NAME_OF(name)  #name,
#define ENTRY_OF(name) call_paths_##name,

const char *const child_variant_names[] = {CALL_PATH_VARIANTS(NAME_OF)};
const size_t child_variant_count = sizeof(child_variant_names) / sizeof(*child_variant_names);
static void (*const variants[])(struct call_path *path,
				unsigned seed) = {CALL_PATH_VARIANTS(ENTRY_OF)};

static struct child_request *shared;

/* futex(word, operation, value, timeout) that touches neither the stack nor RBP. */
long leaf_futex(uint32_t *word, long operation, long value, long timeout);
long leaf_futex_many(uint32_t *word, long operation, long value, long timeout, long, long, long,
		     long, long);
__asm__(".text\n"
	".globl leaf_futex, leaf_futex_many\n"
	".type leaf_futex, @function\n"
	"leaf_futex:\n"
	"leaf_futex_many:\n"
	".cfi_startproc\n"
	"	mov %rcx, %r10\n"
	"	mov $202, %eax\n"
	"	syscall\n"
	"	ret\n"
	".cfi_endproc\n"
	".size leaf_futex, .-leaf_futex\n");

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_for(const _Atomic uint32_t *count, uint32_t value)
{
	while (*count != value)
		syscall(SYS_futex, count, FUTEX_WAIT, value - 1, NULL, NULL, 0);
}

static void announce(_Atomic uint32_t *count)
{
	++*count;
	syscall(SYS_futex, count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static _Unwind_Reason_Code add_expected(struct _Unwind_Context *context, void *unused)
{
	(void)unused;
	if (shared->expected_count == CHILD_FRAMES_MAX)
		return _URC_END_OF_STACK;
	shared->expected[shared->expected_count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void block(struct call_path *path)
{
	struct timespec long_time = {.tv_sec = 1000};
	char byte;

	switch (shared->end) {
	case END_FUTEX:
		syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0);
		break;
	case END_NANOSLEEP:
		nanosleep(&long_time, NULL);
		break;
	case END_READ:
		if (read(shared->pipe[0], &byte, 1) != 1)
			_exit(1);
		break;
	case END_CONDITION:
		pthread_mutex_lock(&shared->mutex);
		while (!shared->is_released)
			pthread_cond_wait(&shared->condition, &shared->mutex);
		shared->is_released = false;
		pthread_mutex_unlock(&shared->mutex);
		break;
	default:
		path->block(path, &shared->word);
	}
}

static void reach_end(struct call_path *path)
{
	shared->expected_count = 0;
	shared->stack_bytes = shared->stack_start - (uintptr_t)__builtin_frame_address(0);
	_Unwind_Backtrace(add_expected, NULL);
	/* libgcc may add a frame without an address at the thread's start. */
	while (shared->expected_count && !shared->expected[shared->expected_count - 1])
		shared->expected_count--;
	if (shared->end == END_SPIN) {
		shared->spin_start_ns = now_ns();
		do
			shared->word += (uint32_t)path->spin(30) & 0;
		while (now_ns() - shared->spin_start_ns < CHILD_SPIN_NS);
		shared->spin_end_ns = now_ns();
		announce(&shared->answer);
		return;
	}
	announce(&shared->answer);
	if (shared->end != END_LEAF)
		block(path);
}

static void *child_main(void *unused)
{
	struct call_path path = {.bottom = reach_end};

	(void)unused;
	shared->tid = gettid();
	shared->stack_start = (uintptr_t)__builtin_frame_address(0);
	for (uint32_t count = 1;; count++) {
		wait_for(&shared->request, count);
		path.leaf = shared->end == END_LEAF ? leaf_futex : NULL;
		path.leaf_many = leaf_futex_many;
		path.word = &shared->word;
		variants[shared->variant](&path, shared->seed);
	}
	return NULL;
}

static void interrupt(int number)
{
	(void)number;
}

void child_start(struct traced_child *child)
{
	struct sigaction action = {.sa_handler = interrupt};
	pthread_mutexattr_t mutex_attr;
	pthread_condattr_t condition_attr;
	pthread_t thread;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	child->shared = shared;
	assert_int_equal(pipe(shared->pipe), 0);
	pthread_mutexattr_init(&mutex_attr);
	pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->mutex, &mutex_attr);
	pthread_condattr_init(&condition_attr);
	pthread_condattr_setpshared(&condition_attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared->condition, &condition_attr);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR2, &action, NULL);
	/* The thread starts on request, after the test has opened perf events. */
	wait_for(&shared->request, 1);
	if (pthread_create(&thread, NULL, child_main, NULL))
		_exit(1);
	pthread_join(thread, NULL);
	_exit(0);
}

void child_stop(struct traced_child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->shared->pipe[0]);
	close(child->shared->pipe[1]);
	munmap(child->shared, sizeof(*child->shared));
}

static bool read_syscall(const struct traced_child *child, uint64_t *sp, uint64_t *ip)
{
	char path[64], line[256] = "";
	unsigned long long values[8];
	long number;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)child->pid,
		 (int)child->shared->tid);
	file = fopen(path, "re");
	assert_non_null(file);
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	if (sscanf(line, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &values[0],
		   &values[1], &values[2], &values[3], &values[4], &values[5], &values[6],
		   &values[7]) != 9)
		return false;
	*sp = values[6];
	*ip = values[7];
	/* announce() also makes a system call. */
	return number != SYS_futex || (values[1] & 127) == FUTEX_WAIT ||
	       (values[1] & 127) == FUTEX_WAIT_BITSET;
}

void child_registers(const struct traced_child *child, struct thread_registers *registers)
{
	*registers = (struct thread_registers){.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	while (!read_syscall(child, &registers->value[THREAD_RSP], &registers->value[THREAD_RIP]))
		sched_yield();
}

void child_go(struct traced_child *child, size_t variant, unsigned seed, enum child_end end)
{
	struct thread_registers registers;

	child->shared->variant = variant;
	child->shared->seed = seed;
	child->shared->end = end;
	child->shared->word = 0;
	announce(&child->shared->request);
	wait_for(&child->shared->answer, child->shared->request);
	if (end != END_SPIN)
		child_registers(child, &registers);
}

void child_release(struct traced_child *child)
{
	switch (child->shared->end) {
	case END_READ:
		assert_int_equal(write(child->shared->pipe[1], "", 1), 1);
		break;
	case END_CONDITION:
		pthread_mutex_lock(&child->shared->mutex);
		child->shared->is_released = true;
		pthread_cond_signal(&child->shared->condition);
		pthread_mutex_unlock(&child->shared->mutex);
		break;
	case END_SPIN:
		break;
	default:
		syscall(SYS_tgkill, child->pid, child->shared->tid, SIGUSR2);
	}
}

bool child_check_stack(const struct traced_child *child, const struct native_stack *stack,
		       uint32_t inner_max)
{
	const struct child_request *expected = child->shared;
	bool is_truncated = stack->flags & XT_STACK_TRUNCATED;
	/* The first expected frame with the same return address. Those inside went on. */
	uint32_t same = expected->end == END_LEAF ? 2 : 1, first = 0;

	assert_true(stack->frame_count >= 1);
	assert_int_equal(stack->frames[0] >> XT_FRAME_KIND_SHIFT, XT_FRAME_EXACT);
	while (first < stack->frame_count &&
	       (stack->frames[first] & XT_FRAME_VALUE_MASK) != expected->expected[same])
		first++;
	assert_in_range(first, 1, inner_max);
	if (first == stack->frame_count) {
		assert_true(is_truncated);
		return false;
	}
	/* The frame inside is in the function that told the stack, after it did. */
	assert_in_range((stack->frames[first - 1] & XT_FRAME_VALUE_MASK) -
				expected->expected[same - 1] + FUNCTION_BYTES_MAX,
			0, 2 * FUNCTION_BYTES_MAX);
	assert_in_range(stack->frame_count - first, 1, expected->expected_count - same);
	for (uint32_t i = 0; first + i < stack->frame_count; i++)
		assert_int_equal(stack->frames[first + i] & XT_FRAME_VALUE_MASK,
				 expected->expected[same + i]);
	if (!is_truncated)
		assert_int_equal(stack->frame_count - first, expected->expected_count - same);
	return !is_truncated;
}
