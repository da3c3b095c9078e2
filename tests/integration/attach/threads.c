/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads MODE: uses CUDA, starts threads that xtrace attach must treat with care, prints "ready",
 * and launches a kernel for each line of standard input. A line "report" prints the results of the
 * threads.
 *
 * The main thread waits with a signal mask of its own, so xtrace attach cannot choose it.
 */
#include <cuda.h>

#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES	   4096
#define SMALL_STACK_BYTES  40960
#define ENOUGH_STACK_BYTES 131072
#define INSIDE_STACK_BYTES 20480
#define MAPPING_BYTES	   (1 << 20)
#define CROWD		   6
#define LIMIT_MS	   1500
#define DISPATCH_ON	   1
#define OTHER_USER	   65534
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static int ends[2];	    /* of a pipe that stays empty */
static int release_ends[2]; /* of one that releases the loader */
static uint8_t *mapping;
static long result;
static double took_ms;
static pthread_t allocating;

static void check(CUresult status)
{
	if (status != CUDA_SUCCESS)
		exit(99);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *wait_here(void *unused)
{
	char byte;

	(void)!read(ends[0], &byte, 1);
	return unused;
}

/* A filter that allows everything. */
static void *wait_filtered(void *unused)
{
	struct sock_filter code = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog filter = {1, &code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(95);
	return wait_here(unused);
}

/* Rights of one thread. The last three need rights that only root has. */
static void *wait_with_own_files(void *unused)
{
	return unshare(CLONE_FILES) ? NULL : wait_here(unused);
}

static void *wait_as_other_user(void *unused)
{
	if (syscall(SYS_setresuid, OTHER_USER, OTHER_USER, OTHER_USER))
		printf("unknown\n");
	return wait_here(unused);
}

static void *wait_with_other_root(void *unused)
{
	if (unshare(CLONE_FS) || chroot("/proc"))
		printf("unknown\n");
	return wait_here(unused);
}

static void *wait_with_other_mounts(void *unused)
{
	if (unshare(CLONE_NEWNS))
		printf("unknown\n");
	return wait_here(unused);
}

/* A system call outside the C library raises SIGSYS, which ends the process. */
static void *wait_dispatching(void *unused)
{
	static char selector = 0; /* allows all until the thread waits */

	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, 0, 0, &selector))
		printf("unknown\n");
	return wait_here(unused);
}

/* Each of these may be forbidden. */
static void *wait_with_priority(void *unused)
{
	const struct sched_param priority = {.sched_priority = 1};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 5);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	return wait_here(unused);
}

static void *wait_for_socket(void *unused)
{
	const struct timeval limit = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000};
	double start_ms = now_ms();
	int pair[2];
	char byte;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	result = recv(pair[0], &byte, 1, 0);
	if (result < 0)
		result = -errno;
	took_ms = now_ms() - start_ms;
	return unused;
}

static void *sleep_long(void *unused)
{
	sleep(100);
	return unused;
}

/* The main thread does not wait for standard input then. */
static void *end_process(void *unused)
{
	char byte;

	(void)unused;
	exit((int)read(STDIN_FILENO, &byte, 1));
}

static int wait_in_callback(struct dl_phdr_info *info, size_t bytes, void *context)
{
	char byte;

	(void)info, (void)bytes, (void)context;
	(void)!read(release_ends[0], &byte, 1);
	return 1;
}

/* The loader cannot add a library meanwhile. */
static void *hold_loader(void *unused)
{
	dl_iterate_phdr(wait_in_callback, unused);
	return unused;
}

/* An allocator has this name, whatever file it is in. */
__attribute__((noipa)) void *pvalloc(size_t bytes)
{
	return (char *)wait_here(NULL) + bytes;
}

static void *allocate(void *unused)
{
	return pvalloc(unused != NULL);
}

/* A garbage collector stops the other threads like this. */
static void stop_allocator(int number)
{
	char byte;

	if (pthread_equal(pthread_self(), allocating))
		(void)!read(release_ends[0], &byte, 1);
	else
		pthread_kill(allocating, number);
}

static pthread_t start(void *(*routine)(void *), size_t stack_bytes, void *stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (stack)
		pthread_attr_setstack(&attributes, stack, stack_bytes);
	else if (stack_bytes)
		pthread_attr_setstacksize(&attributes, stack_bytes);
	if (pthread_create(&thread, &attributes, routine, NULL))
		exit(96);
	return thread;
}

/* The stack is the upper end of a mapping whose other bytes belong to the program. */
static void start_inside(void)
{
	mapping = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	memset(mapping, 0x5a, MAPPING_BYTES - INSIDE_STACK_BYTES);
	start(wait_here, INSIDE_STACK_BYTES, mapping + MAPPING_BYTES - INSIDE_STACK_BYTES);
}

/* Programs with thousands of threads may set a small default size. */
static void start_with_small_default(void)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
	if (pthread_setattr_default_np(&attributes))
		exit(96);
	start(wait_here, ENOUGH_STACK_BYTES, NULL);
}

static void execute(int number)
{
	char *const arguments[] = {"threads", "executes", NULL};

	(void)number;
	execv("/proc/self/exe", arguments);
}

static void start_mode(const char *mode)
{
	static const struct {
		const char *name;
		void *(*routines[2])(void *);
	} modes[] = {
		{"filtered", {wait_filtered}},	      {"dispatching", {wait_dispatching}},
		{"priority", {wait_with_priority}},   {"limit", {wait_for_socket, sleep_long}},
		{"loader", {hold_loader, wait_here}}, {"executes", {wait_here}},
		{"headless", {end_process}},	      {"files", {wait_with_own_files}},
		{"user", {wait_as_other_user}},	      {"root", {wait_with_other_root}},
		{"mounts", {wait_with_other_mounts}},
	};

	signal(SIGUSR1, execute);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		for (int r = 0; r < 2 && !strcmp(mode, modes[i].name); r++)
			if (modes[i].routines[r])
				start(modes[i].routines[r], 0, NULL);
	if (!strcmp(mode, "inside"))
		start_inside();
	if (!strcmp(mode, "interrupted")) {
		allocating = start(allocate, 0, NULL);
		signal(SIGUSR2, stop_allocator);
		start(wait_here, 0, NULL);
	}
	if (!strcmp(mode, "protected"))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!strcmp(mode, "default"))
		start_with_small_default();
	for (int i = 0; i < (!strcmp(mode, "small") ? 1 : !strcmp(mode, "crowd") ? CROWD : 0); i++)
		start(wait_here, SMALL_STACK_BYTES, NULL);
	if (!strcmp(mode, "crowd"))
		start(wait_here, 0, NULL);
}

/* Whether the memory below the stack is as before. */
static bool is_mapping_whole(void)
{
	for (size_t i = 0; mapping && i < MAPPING_BYTES - INSIDE_STACK_BYTES; i++)
		if (mapping[i] != 0x5a)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	sigset_t none;
	CUfunction kernel;
	CUcontext context;
	CUmodule module;
	CUdevice device;
	char line[32];

	if (argc < 2 || pipe(ends) || pipe(release_ends))
		return 97;
	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\n.address_size 64\n"
					".visible .entry kernel() { ret; }\n"));
	check(cuModuleGetFunction(&kernel, module, "kernel"));
	sigemptyset(&none);
	/* After exec(), the signal is still blocked by its handler. */
	sigprocmask(SIG_SETMASK, &none, NULL);
	start_mode(argv[1]);
	usleep(50000); /* until the threads wait */
	setvbuf(stdin, NULL, _IONBF, 0);
	printf("ready\n");
	fflush(stdout);
	if (!strcmp(argv[1], "headless"))
		pthread_exit(NULL);
	for (;;) {
		if (ppoll(&input, 1, NULL, &none) < 0)
			continue; /* a signal */
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		if (!strcmp(line, "release\n") && write(release_ends[1], line, 1) != 1)
			return 98;
		check(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		check(cuCtxSynchronize());
		printf("result %ld ms %.0f whole %d\n", result, took_ms, is_mapping_whole());
		fflush(stdout);
	}
}
