/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose threads do one known thing each, for the tests of CPU sampling.
 * usage: load CASE MILLISECONDS [FILE]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES   4096
#define FAULT_BYTES  (16u << 20)
#define THREADS_MANY 500
#define SHORT_US     500

static unsigned duration_ms;
static const char *file_name;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_us(uint64_t us)
{
	struct timespec left = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static uint64_t end_ns(void)
{
	return now_ns(CLOCK_MONOTONIC) + (uint64_t)duration_ms * 1000000;
}

#define WORK(name)                                                                                 \
	__attribute__((noinline)) static uint64_t name(uint64_t rounds)                            \
	{                                                                                          \
		uint64_t x = rounds;                                                               \
		for (uint64_t i = 0; i < rounds; i++) {                                            \
			x = x * UINT64_C(6364136223846793005) + 1;                                 \
			__asm__ volatile("" : "+r"(x));                                            \
		}                                                                                  \
		return x;                                                                          \
	}
WORK(work_long)
WORK(work_short)

/* Two functions with a known ratio of CPU time, in slices that are short against a period. */
static int shares(void)
{
	uint64_t until = end_ns(), used[2] = {0}, start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned slices = 0;

	while (now_ns(CLOCK_MONOTONIC) < until) {
		uint64_t middle, end;

		work_long(210000);
		middle = now_ns(CLOCK_THREAD_CPUTIME_ID);
		work_short(90000);
		end = now_ns(CLOCK_THREAD_CPUTIME_ID);
		used[0] += middle - start;
		used[1] += end - middle;
		start = end;
		slices++;
	}
	printf("{\"work_long\": %llu, \"work_short\": %llu}\n", (unsigned long long)used[0],
	       (unsigned long long)used[1]);
	return 0;
}

static int sleeps(void)
{
	sleep_us((uint64_t)duration_ms * 1000);
	return 0;
}

static void *hold_lock(void *barrier)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(barrier);
	sleep_us((uint64_t)duration_ms * 1000);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static int locks(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, hold_lock, &barrier);
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	return 0;
}

/* The parent waits for a byte from a child that computes. */
static int pipes(void)
{
	uint64_t until = end_ns();
	int ends[2];
	pid_t child;
	char byte;

	if (pipe(ends))
		return 1;
	child = fork();
	if (!child) {
		close(ends[0]);
		while (now_ns(CLOCK_MONOTONIC) < until)
			work_long(100000);
		_exit(write(ends[1], "", 1) != 1);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		return 1;
	waitpid(child, NULL, 0);
	printf("{\"child\": %d}\n", child);
	return 0;
}

static int waits(void)
{
	pid_t child = fork();

	if (!child)
		_exit(sleeps());
	waitpid(child, NULL, 0);
	printf("{\"child\": %d}\n", child);
	return 0;
}

static int syncs(void)
{
	uint64_t until = end_ns();
	static char block[1 << 20];
	int fd = open(file_name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	while (now_ns(CLOCK_MONOTONIC) < until)
		if (pwrite(fd, block, sizeof(block), 0) < 0 || fsync(fd))
			return 1;
	return 0;
}

static double ms_of(struct timeval time)
{
	return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

/*
 * Tells how much of the CPU time the kernel has, and how many faults there are in 1 ms of it. In a
 * virtual machine whose host has to find the memory, a fault may take 10 times longer, and the
 * access after it, too.
 */
static int faults(void)
{
	uint64_t until = end_ns();
	struct rusage used;
	double kernel_ms, all_ms;

	while (now_ns(CLOCK_MONOTONIC) < until) {
		char *memory = mmap(NULL, FAULT_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return 1;
		madvise(memory, FAULT_BYTES, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < FAULT_BYTES; i += PAGE_BYTES)
			memory[i] = 1;
		munmap(memory, FAULT_BYTES);
	}
	getrusage(RUSAGE_SELF, &used);
	kernel_ms = ms_of(used.ru_stime);
	all_ms = kernel_ms + ms_of(used.ru_utime);
	printf("{\"kernel_share\": %.3f, \"faults_per_ms\": %.1f}\n", kernel_ms / all_ms,
	       (double)used.ru_minflt / all_ms);
	return 0;
}

static int kernel(void)
{
	uint64_t until = end_ns();
	static char block[8 << 20];
	int fd = open("/dev/zero", O_RDONLY);

	while (now_ns(CLOCK_MONOTONIC) < until)
		if (read(fd, block, sizeof(block)) < 0)
			return 1;
	return 0;
}

static void *live_shortly(void *unused)
{
	sleep_us(SHORT_US);
	return unused;
}

static int short_threads(void)
{
	uint64_t until = end_ns();
	unsigned count = 0;

	for (; now_ns(CLOCK_MONOTONIC) < until; count += 4) {
		pthread_t threads[4];

		for (int i = 0; i < 4; i++)
			if (pthread_create(&threads[i], NULL, live_shortly, NULL))
				return 1;
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	printf("{\"threads\": %u}\n", count);
	return 0;
}

static int short_processes(void)
{
	uint64_t until = end_ns();
	unsigned count = 0;

	for (; now_ns(CLOCK_MONOTONIC) < until; count++) {
		pid_t child = fork();

		if (!child)
			_exit(work_long(100000) == 0);
		waitpid(child, NULL, 0);
	}
	printf("{\"processes\": %u}\n", count);
	return 0;
}

static void *sleep_all_along(void *unused)
{
	sleeps();
	return unused;
}

static int many_threads(void)
{
	static pthread_t threads[THREADS_MANY];

	for (int i = 0; i < THREADS_MANY; i++)
		if (pthread_create(&threads[i], NULL, sleep_all_along, NULL))
			return 1;
	for (int i = 0; i < THREADS_MANY; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int killed(void)
{
	uint64_t until = end_ns();

	while (now_ns(CLOCK_MONOTONIC) < until)
		work_long(100000);
	return kill(getpid(), SIGKILL);
}

/* The program becomes another one. */
static void *exec_sleeps(void *unused)
{
	execl("/proc/self/exe", "load", "sleeps", "300", (char *)NULL);
	return unused;
}

static int execs(void)
{
	uint64_t until = end_ns();

	while (now_ns(CLOCK_MONOTONIC) < until)
		work_long(100000);
	exec_sleeps(NULL);
	return 1;
}

/* The thread that calls exec becomes the main thread, with its id. */
static int thread_execs(void)
{
	pthread_t thread;

	sleeps();
	pthread_create(&thread, NULL, exec_sleeps, NULL);
	pthread_join(thread, NULL);
	return 1;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{"shares", shares},
	{"sleeps", sleeps},
	{"locks", locks},
	{"pipes", pipes},
	{"waits", waits},
	{"syncs", syncs},
	{"faults", faults},
	{"kernel", kernel},
	{"short_threads", short_threads},
	{"short_processes", short_processes},
	{"many_threads", many_threads},
	{"killed", killed},
	{"execs", execs},
	{"thread_execs", thread_execs},
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	duration_ms = (unsigned)atoi(argv[2]);
	file_name = argc > 3 ? argv[3] : "/dev/null";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1]))
			return cases[i].run();
	return 2;
}
