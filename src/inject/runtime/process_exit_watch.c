/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the process's threads from /proc. Writer thread, except at start-up.
 */
#include "inject/runtime/process_exit_watch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define KNOWN_THREADS_MAX 16

/*
 * Threads that do not belong to the program; empty if unknown. The start time detects a reused
 * thread id.
 */
static struct {
	int id;
	unsigned long long start_ticks;
} known_threads[KNOWN_THREADS_MAX];
static atomic_uint known_count;
static bool was_single_threaded;

/* The signals that the program's thread had blocked. */
static sigset_t blocked;

/*
 * State of a thread or the process. An ended main thread stays a zombie while other threads live.
 */
struct status {
	char state;
	unsigned threads;
	unsigned long long start_ticks;
};

#define FOUR_NUMBERS	" %*d %*d %*d %*d"
#define SIXTEEN_NUMBERS FOUR_NUMBERS FOUR_NUMBERS FOUR_NUMBERS FOUR_NUMBERS

static bool read_status(const char *path, struct status *status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	const char *rest;
	ssize_t bytes;

	if (fd < 0)
		return false;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	/* The name in parentheses may contain anything. */
	rest = strrchr(text, ')');
	return rest && sscanf(rest, ") %c" SIXTEEN_NUMBERS " %u %*d %llu", &status->state,
			      &status->threads, &status->start_ticks) == 3;
}

static bool read_start(int id, unsigned long long *start_ticks)
{
	struct status status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	if (!read_status(path, &status))
		return false;
	*start_ticks = status.start_ticks;
	return true;
}

/* Calls `visit` with each thread except the main one, until it returns false. */
static bool all_threads(bool (*visit)(int id, unsigned *count), unsigned *count)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool is_good = folder != NULL;

	while (is_good && (entry = readdir(folder))) {
		int id = atoi(entry->d_name);

		if (id && id != getpid())
			is_good = visit(id, count);
	}
	if (folder)
		closedir(folder);
	return is_good;
}

static bool add(int id, unsigned *count)
{
	if (*count == KNOWN_THREADS_MAX)
		return false;
	known_threads[*count].id = id;
	if (read_start(id, &known_threads[*count].start_ticks)) /* otherwise it has ended */
		++*count;
	return true;
}

static bool is_known(int id, unsigned *count)
{
	unsigned long long start_ticks;

	for (unsigned i = 0; i < *count; i++)
		if (known_threads[i].id == id)
			return read_start(id, &start_ticks) &&
			       start_ticks == known_threads[i].start_ticks;
	return false;
}

void process_exit_watch_begin(void)
{
	struct status status;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	was_single_threaded = read_status("/proc/self/stat", &status) && status.threads == 1;
}

void process_exit_watch_end(void)
{
	unsigned count = 0;

	if (was_single_threaded && all_threads(add, &count))
		atomic_store(&known_count, count);
}

bool process_exit_watch_has_ended(void)
{
	unsigned count = atomic_load(&known_count);
	struct status status;

	return count && read_status("/proc/self/stat", &status) && status.state == 'Z' &&
	       status.threads <= count + 1 && all_threads(is_known, &count);
}

/*
 * Looks like a thread of the program: exit handlers may need more stack than the writer has, and
 * signals.
 */
static void *exit_main(void *end)
{
	prctl(PR_SET_NAME, program_invocation_short_name);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	((void (*)(int))end)(0);
	return NULL;
}

void process_exit_watch_end_process(void)
{
	void *end = dlsym(RTLD_DEFAULT, "exit");
	pthread_t thread;

	if (end && pthread_create(&thread, NULL, exit_main, end))
		exit_main(end);
}
