/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a process and its children, and the reasons for which perf is refused. Where perf is
 * refused, the tests that need it are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sampler/perf_events.h"

#define HZ 1000.0

static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void compute(uint64_t cpu_ns)
{
	uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < cpu_ns)
		for (int i = 0; i < 20000; i++)
			sink += (uint64_t)i;
}

static void *compute_in_thread(void *cpu_ns)
{
	compute(*(uint64_t *)cpu_ns);
	return NULL;
}

/* Computes in the process, a thread and a forked child. */
static void be_busy(uint64_t cpu_ns)
{
	pthread_t thread;
	pid_t pid;

	pthread_create(&thread, NULL, compute_in_thread, &cpu_ns);
	compute(cpu_ns);
	pthread_join(thread, NULL);
	pid = fork();
	if (!pid) {
		compute(cpu_ns);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static pid_t start_busy(int *start_pipe, uint64_t cpu_ns)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) >= 0)
			be_busy(cpu_ns);
		_exit(0);
	}
	close(ends[0]);
	*start_pipe = ends[1];
	return pid;
}

struct seen {
	pid_t pid;
	uint64_t sample_count, start_ns;
	uint32_t is_main, is_thread, is_child; /* counts */
};

static void look(void *context, const struct perf_sample *sample)
{
	struct seen *seen = context;
	uint64_t word;

	seen->sample_count++;
	seen->is_main += sample->pid == seen->pid && sample->tid == seen->pid;
	seen->is_thread += sample->pid == seen->pid && sample->tid != seen->pid;
	seen->is_child += sample->pid != seen->pid;
	assert_in_range(sample->time_ns, seen->start_ns, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(sample->registers.known, (1u << THREAD_REGISTERS) - 1);
	assert_true(sample->registers.value[THREAD_RIP] && sample->registers.value[THREAD_RSP]);
	assert_in_range(sample->stack_bytes, 8, PERF_STACK_BYTES);
	memcpy(&word, sample->stack, sizeof(word));
}

static struct perf_events *open_or_skip(pid_t pid, int start_pipe)
{
	struct perf_events *events;
	char why[256] = "";

	if (!perf_events_open(&events, pid, HZ, why, sizeof(why)))
		return events;
	print_message("perf refused: %s\n", why);
	assert_true(why[0]);
	close(start_pipe);
	waitpid(pid, NULL, 0);
	skip();
	return NULL;
}

static void samples_threads_and_children(void **unused)
{
	const uint64_t cpu_ns = 300000000;
	int start_pipe;
	pid_t pid = start_busy(&start_pipe, cpu_ns);
	struct seen seen = {.pid = pid, .start_ns = clock_ns(CLOCK_MONOTONIC)};
	struct perf_events *events = open_or_skip(pid, start_pipe);
	struct pollfd ready = {.fd = perf_events_descriptor(events), .events = POLLIN};
	double sampled_ns;

	(void)unused;
	assert_int_equal(poll(&ready, 1, 0), 0);
	close(start_pipe);
	for (int i = 0; waitpid(pid, NULL, WNOHANG) == 0; i++) {
		poll(&ready, 1, 100);
		perf_events_drain(events, look, &seen);
		if (i % 100 == 0)
			perf_events_jitter(events);
	}
	perf_events_drain(events, look, &seen);
	assert_int_equal(events->lost_count, 0);
	sampled_ns = (double)seen.sample_count * 1e9 / HZ;
	print_message("%llu samples, %.1f %% of the CPU time\n",
		      (unsigned long long)seen.sample_count,
		      100 * sampled_ns / (3 * (double)cpu_ns));
	assert_true(seen.is_main > 50 && seen.is_thread > 50 && seen.is_child > 50);
	/*
	 * Time in the kernel has no samples, and a loaded machine spends some there. While the
	 * hypervisor runs another guest, the sampling timer advances but the CPU time does not. So
	 * only the time that two threads had bounds the samples from above.
	 */
	assert_true(sampled_ns > 0.5 * 3 * (double)cpu_ns);
	assert_true(sampled_ns < 1.1 * 2 * (double)(clock_ns(CLOCK_MONOTONIC) - seen.start_ns));
	perf_events_close(events);
}

static void counts_lost_samples(void **unused)
{
	int start_pipe;
	pid_t pid = start_busy(&start_pipe, 700000000);
	struct seen seen = {.pid = pid, .start_ns = clock_ns(CLOCK_MONOTONIC)};
	struct perf_events *events = open_or_skip(pid, start_pipe);
	clockid_t cpu_clock;

	(void)unused;
	close(start_pipe);
	/* The rings are full by then. The kernel reports the loss before the next sample. */
	assert_int_equal(clock_getcpuclockid(pid, &cpu_clock), 0);
	while (clock_ns(cpu_clock) < 600000000)
		usleep(10000);
	perf_events_drain(events, look, &seen);
	waitpid(pid, NULL, 0);
	perf_events_drain(events, look, &seen);
	assert_true(seen.sample_count > 20);
	assert_true(events->lost_count > 20);
	perf_events_close(events);
}

static void is_off_by_environment(void **unused)
{
	struct perf_events *events;
	char why[256] = "";

	(void)unused;
	setenv("XTRACE_CPU_PERF", "off", 1);
	assert_int_equal(perf_events_open(&events, getpid(), HZ, why, sizeof(why)), -EPERM);
	assert_string_equal(why, "XTRACE_CPU_PERF=off");
	unsetenv("XTRACE_CPU_PERF");
}

static void reports_ended_process(void **unused)
{
	struct perf_events *events;
	char why[256] = "";
	pid_t pid = fork();
	int error;

	(void)unused;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	error = perf_events_open(&events, pid, HZ, why, sizeof(why));
	if (error == -ESRCH)
		assert_string_equal(why, "the process has ended");
	else
		assert_true(error == -EACCES || error == -EPERM || error == -ENOSYS);
}

static void refuse_by_seccomp(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

/* Returns the exit status of a process in which open fails: 0 if the reason has the text. */
static int try_refused(void (*prepare)(int), int argument, int error, const char *text)
{
	struct perf_events *events;
	char why[256] = "";
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prepare(argument);
		if (perf_events_open(&events, getpid(), HZ, why, sizeof(why)) == error &&
		    strstr(why, text))
			_exit(0);
		fprintf(stderr, "reason: %s\n", why);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void names_seccomp(void **unused)
{
	int status = try_refused(refuse_by_seccomp, EPERM, -EPERM, "--cap-add PERFMON");

	(void)unused;
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
	assert_int_equal(try_refused(refuse_by_seccomp, ENOSYS, -ENOSYS, "CONFIG_PERF_EVENTS"), 0);
}

static void limit_files(int count)
{
	struct rlimit limit = {(rlim_t)count, (rlim_t)count};

	setrlimit(RLIMIT_NOFILE, &limit);
}

static void names_limit_of_open_files(void **unused)
{
	struct perf_events *events;
	char why[256] = "";

	(void)unused;
	if (perf_events_open(&events, getpid(), HZ, why, sizeof(why))) {
		print_message("perf refused: %s\n", why);
		skip();
	}
	perf_events_close(events);
	assert_int_equal(try_refused(limit_files, 3, -EMFILE, "'ulimit -n'"), 0);
}

/* poll() reports events that ended forever, so they must leave the set. */
static void stops_polling_ended_events(void **unused)
{
	struct perf_events *events;
	struct pollfd polled = {.events = POLLIN};
	int start_pipe;
	pid_t pid = start_busy(&start_pipe, 0);

	(void)unused;
	events = open_or_skip(pid, start_pipe);
	assert_true(perf_events_descriptor(events) >= 0);
	perf_events_drop_ended(events);
	assert_true(perf_events_descriptor(events) >= 0);
	close(start_pipe);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 1000 && perf_events_descriptor(events) >= 0; i++) {
		polled.fd = perf_events_descriptor(events);
		assert_int_equal(poll(&polled, 1, 10000), 1);
		perf_events_drop_ended(events);
	}
	assert_int_equal(perf_events_descriptor(events), -1);
	perf_events_close(events);
}

static void explains_other_errors(void **unused)
{
	char why[256];

	(void)unused;
	perf_refusal_explain(EACCES, 4, why, sizeof(why));
	assert_true(strlen(why) > 20);
	perf_refusal_explain(EINVAL, 4, why, sizeof(why));
	assert_string_equal(why, "perf_event_open: Invalid argument");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_threads_and_children),
		cmocka_unit_test(counts_lost_samples),
		cmocka_unit_test(is_off_by_environment),
		cmocka_unit_test(reports_ended_process),
		cmocka_unit_test(stops_polling_ended_events),
		cmocka_unit_test(names_seccomp),
		cmocka_unit_test(names_limit_of_open_files),
		cmocka_unit_test(explains_other_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
