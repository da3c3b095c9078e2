/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, identity and ranks are written by the thread that starts the tracer, before the writer
 * thread exists. The writer thread reads the process's threads from /proc.
 */
#include "inject/runtime/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#include "inject/runtime/clock.h"

static const char *passed_settings; /* NULL: read the environment */

void settings_use(const char *block)
{
	passed_settings = block;
}

bool settings_are_attached(void)
{
	return passed_settings != NULL;
}

const char *setting(const char *name)
{
	size_t length = strlen(name);

	if (!passed_settings)
		return getenv(name);
	for (const char *entry = passed_settings; *entry; entry += strlen(entry) + 1)
		if (!strncmp(entry, name, length) && entry[length] == '=')
			return entry + length + 1;
	return NULL;
}

/*
 * The traced process is known by its pid and a page that the kernel zeroes in a child. The pid
 * alone is not enough: process 1 of a pid namespace can create a child that is process 1 of
 * another. Any thread; no lock.
 */
static const atomic_bool always = true;
static const atomic_bool *own_mark =
	&always;      /* used if the kernel is older than 4.14 or has no memory */
static pid_t own_pid; /* 0: not tracing */

void fork_guard_begin(void)
{
	atomic_bool *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	own_pid = getpid();
	if (page == MAP_FAILED)
		return;
	if (madvise(page, sizeof(*page), MADV_WIPEONFORK)) {
		munmap(page, sizeof(*page));
		return;
	}
	atomic_store(page, true);
	own_mark = page;
}

void fork_guard_abandon(void)
{
	own_pid = 0;
	own_mark = &always;
}

bool is_own_process(void)
{
	return !own_pid || (atomic_load(own_mark) && getpid() == own_pid);
}

#define RANK_DIGITS_MAX 9  /* others are no ranks, so they are ignored */
#define JOB_BYTES_MAX	63 /* longer names of jobs are ignored */
#define DIGITS		"0123456789"
#define JOB_LETTERS	DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-."

static uint64_t identity[2];

static const struct {
	const char *name, *letters;
	size_t bytes_max;
} rank_specs[PROCESS_RANKS] = {
	{"RANK", DIGITS, RANK_DIGITS_MAX},
	{"LOCAL_RANK", DIGITS, RANK_DIGITS_MAX},
	{"WORLD_SIZE", DIGITS, RANK_DIGITS_MAX},
	{"OMPI_COMM_WORLD_RANK", DIGITS, RANK_DIGITS_MAX},
	{"PMI_RANK", DIGITS, RANK_DIGITS_MAX},
	{"SLURM_PROCID", DIGITS, RANK_DIGITS_MAX},
	{"TORCHELASTIC_RUN_ID", JOB_LETTERS, JOB_BYTES_MAX},
	{"SLURM_JOB_ID", JOB_LETTERS, JOB_BYTES_MAX},
};
static char rank_values[PROCESS_RANKS][JOB_BYTES_MAX + 1];

void process_identity_draw(void)
{
	int saved_errno = errno;

	/* Without random numbers, the moment and the pid still differ in most cases. */
	if (getrandom(identity, sizeof(identity), 0) != sizeof(identity)) {
		identity[0] = monotonic_ns() << 20 ^ (uint64_t)getpid();
		identity[1] = xt_clock_ns(CLOCK_REALTIME) ^ (uint64_t)(uintptr_t)&saved_errno << 16;
	}
	errno = saved_errno;
}

void process_identity_text(char out[PROCESS_IDENTITY_BYTES])
{
	snprintf(out, PROCESS_IDENTITY_BYTES, "%016llx%016llx", (unsigned long long)identity[0],
		 (unsigned long long)identity[1]);
}

void process_ranks_read(void)
{
	for (int i = 0; i < PROCESS_RANKS; i++) {
		const char *value = setting(rank_specs[i].name);
		size_t length = value ? strnlen(value, rank_specs[i].bytes_max + 1) : 0;

		rank_values[i][0] = '\0';
		if (length <= rank_specs[i].bytes_max && length &&
		    strspn(value, rank_specs[i].letters) == length)
			memcpy(rank_values[i], value, length + 1);
	}
}

const char *process_rank(int i, const char **name)
{
	*name = rank_specs[i].name;
	return rank_values[i];
}

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
static sigset_t blocked_signals;

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

static bool add_thread(int id, unsigned *count)
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

	pthread_sigmask(SIG_SETMASK, NULL, &blocked_signals);
	was_single_threaded = read_status("/proc/self/stat", &status) && status.threads == 1;
}

void process_exit_watch_end(void)
{
	unsigned count = 0;

	if (was_single_threaded && all_threads(add_thread, &count))
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
	pthread_sigmask(SIG_SETMASK, &blocked_signals, NULL);
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

HOT_STATE atomic_uint recording_paused;
HOT_STATE atomic_bool recording_was_paused;
