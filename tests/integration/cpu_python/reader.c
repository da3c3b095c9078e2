/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a Python program and reads the frames of its threads. Commands on stdin:
 *
 * - open: print version and path of the interpreter, or why there is none
 * - read TID PAUSE: print the result, then a line for each frame
 * - gil ADDRESS: print whether this is the address of the interpreter lock
 * - holder: print the thread that holds it
 * - time TID COUNT: print the mean cost of a read in ns, and how many were accepted
 * - follow TID COUNT ALL FILE: read until COUNT were accepted, if not ALL only those while the
 *   process ran. FILE is mapped. Print its first word as it was before and after each accepted
 *   read, and the frames. At the end print the number of reads while the process ran, and of those
 *   accepted.
 *
 * An empty line ends each answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sampler/process_modules.h"
#include "sampler/process_read.h"
#include "sampler/python_process.h"

/* Reads of a running program are seldom accepted, and the program may wait for a processor. */
#define FOLLOW_NS_EACH UINT64_C(30000000)

static struct python_process *process;
static struct python_stack stack;
static pid_t child;

static const char *const results[] = {
	[PYTHON_READ_NONE] = "none",
	[PYTHON_READ_OK] = "ok",
	[PYTHON_READ_CHANGED] = "changed",
	[PYTHON_READ_FAILED] = "failed",
};

/*
 * Gives the program and the reader a processor each, if there are two. Otherwise the reader takes
 * the place of the program when it wakes up, and never reads while the program runs.
 */
static void stay_on(int index)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&allowed) > 1; cpu++)
		if (CPU_ISSET(cpu, &allowed) && index-- == 0) {
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
		}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void open_process(void)
{
	static struct process_modules modules;
	char why[256] = "";
	int rc = process_modules_refresh(&modules, child);

	if (!rc)
		rc = python_process_open(&process, child, &modules, why, sizeof(why));
	if (rc)
		printf("error\t%s\t%s\n", strerror(-rc), why);
	else
		printf("ok\t%s\t%s\n", python_process_version(process),
		       python_process_path(process));
}

static void read_thread(pid_t tid, bool has_pause)
{
	enum python_read result;

	python_process_refresh(process);
	result = python_process_read(process, tid, has_pause, &stack);
	printf("%s\t%d\n", results[result], stack.is_truncated);
	for (uint32_t i = 0; i < stack.frame_count; i++) {
		const struct python_frame_read *frame = &stack.frames[i];
		const struct python_function *function =
			python_process_function(process, frame->function);

		printf("%s\t%s\t%" PRIu32 "\t%" PRIu32 "\t%" PRIx64 "\n", function->name,
		       function->file, function->first_line, frame->line, frame->anchor);
	}
}

static void time_reads(pid_t tid, int count)
{
	uint64_t start = now_ns();
	int accepted = 0;

	for (int i = 0; i < count; i++)
		accepted += python_process_read(process, tid, false, &stack) == PYTHON_READ_OK;
	printf("%" PRIu64 "\t%d\t%" PRIu32 "\n", (now_ns() - start) / (uint64_t)count, accepted,
	       stack.frame_count);
}

static void print_followed(uint64_t before, uint64_t after)
{
	printf("%" PRIu64 "\t%" PRIu64, before, after);
	for (uint32_t i = 0; i < stack.frame_count; i++) {
		const struct python_function *function =
			python_process_function(process, stack.frames[i].function);

		printf("\t%s:%" PRIu32 ":%s", function->name, stack.frames[i].line, function->file);
	}
	putchar('\n');
}

/* CPU time that the process used so far, to the nanosecond. */
static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec used;

	clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void follow(pid_t tid, int count, bool all, const char *path)
{
	const struct timespec between = {.tv_nsec = 100000};
	clockid_t clock;
	const uint64_t end_ns = now_ns() + (uint64_t)count * FOLLOW_NS_EACH;
	int fd = open(path, O_RDONLY | O_CLOEXEC), reads = 0, accepted = 0, others = 0;
	const uint64_t *marker = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	if (marker == MAP_FAILED || clock_getcpuclockid(child, &clock))
		return;
	while (accepted + (all ? others : 0) < count && now_ns() < end_ns) {
		uint64_t before, after, used_ns, start_ns;
		enum python_read result;
		bool is_running;

		nanosleep(&between, NULL);
		python_process_refresh(process);
		start_ns = now_ns();
		used_ns = cpu_ns(clock);
		before = __atomic_load_n(marker, __ATOMIC_ACQUIRE);
		result = python_process_read(process, tid, true, &stack);
		after = __atomic_load_n(marker, __ATOMIC_ACQUIRE);
		used_ns = cpu_ns(clock) - used_ns;
		is_running = used_ns > (now_ns() - start_ns) / 2;
		reads += is_running;
		if (result == PYTHON_READ_FAILED)
			puts("failed");
		if (result != PYTHON_READ_OK)
			continue;
		accepted += is_running;
		others += !is_running;
		print_followed(before, after);
	}
	printf("reads\t%d\t%d\n", reads, accepted);
	close(fd);
}

static void run_command(char *line)
{
	char path[4096];
	uint64_t address;
	int tid, number, all;

	if (!strcmp(line, "open\n"))
		open_process();
	else if (sscanf(line, "read %d %d", &tid, &number) == 2)
		read_thread(tid, number);
	else if (sscanf(line, "gil %" SCNx64, &address) == 1)
		printf("%d\n", python_process_is_gil(process, address));
	else if (!strcmp(line, "holder\n"))
		printf("%d\n", python_process_gil_holder(process));
	else if (sscanf(line, "time %d %d", &tid, &number) == 2)
		time_reads(tid, number);
	else if (sscanf(line, "follow %d %d %d %4095s", &tid, &number, &all, path) == 4)
		follow(tid, number, all, path);
	else
		printf("unknown command: %s", line);
	putchar('\n');
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[8192];

	if (argc < 2)
		return 2;
	child = fork();
	if (child == 0) {
		int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stay_on(0);
		dup2(nothing, STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	stay_on(1);
	printf("%d\n\n", child);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		run_command(line);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	python_process_close(process);
	return 0;
}
