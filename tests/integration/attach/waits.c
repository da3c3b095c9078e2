/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits MODE: uses CUDA, prints "ready PID", and waits in one system call with known values in all
 * registers. A line on standard input ends the wait if nothing else does. Then prints what the call
 * returned, how long it took, and which registers have changed; launches kernels until standard
 * input ends.
 *
 * Its only thread is the one that waits, so that xtrace attach must choose it.
 */
#include <cuda.h>

#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "call_with_state.h"

#define TIME_MS	   1500
#define TIME_S	   (TIME_MS / 1000)
#define TIME_NS	   (TIME_MS % 1000 * 1000000l)
#define FLAGS	   0xcd7 /* the arithmetic flags, direction, and one that is always set */
#define FLAGS_MASK 0xcd5
#define KERNELS	   20

static int ends[2]; /* of a pipe */
static int listener;
static uint32_t *word; /* of a futex */
static struct timespec remaining, duration = {TIME_S, TIME_NS};
static struct timeval select_time = {TIME_S, TIME_NS / 1000};
static struct pollfd polled;
static fd_set readable;
static struct epoll_event event;
static char byte;
static volatile sig_atomic_t handled_count;
static bool raises;

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		exit(99);
}

static void handle(int number)
{
	(void)number;
	handled_count++;
}

/* pthread_create() calls this, so that a signal comes while the stub runs. */
__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
	void *memory = malloc(count * bytes);

	if (raises) {
		raises = false;
		syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
	}
	return memory ? memset(memory, 0, count * bytes) : NULL;
}

static uint64_t address(void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void make_epoll(struct call_state *state)
{
	int set = epoll_create1(0);

	event.events = EPOLLIN;
	epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
	state->rdi = (uint64_t)set;
	state->rsi = address(&event);
	state->rdx = 1;
}

static void use_handler(int flags)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = flags};

	sigaction(SIGUSR1, &action, NULL);
	raises = true;
}

static void prepare(const char *mode, struct call_state *state)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* The result of read(), unless the mode says otherwise. */
	state->rax = SYS_read;
	state->rdi = (uint64_t)ends[0];
	state->rsi = address(&byte);
	state->rdx = 1;
	if (!strcmp(mode, "interrupted"))
		use_handler(0);
	else if (!strcmp(mode, "restarted"))
		use_handler(SA_RESTART);
	else if (!strcmp(mode, "accept"))
		*state = (struct call_state){.rax = SYS_accept, .rdi = (uint64_t)listener};
	else if (!strcmp(mode, "futex") || !strcmp(mode, "futex_time"))
		*state = (struct call_state){.rax = SYS_futex,
					     .rdi = address(word),
					     .rsi = FUTEX_WAIT,
					     .r10 = mode[5] ? address(&duration) : 0};
	else if (!strcmp(mode, "poll") || !strcmp(mode, "poll_time"))
		*state = (struct call_state){.rax = SYS_poll,
					     .rdi = address(&polled),
					     .rsi = 1,
					     .rdx = mode[4] ? TIME_MS : (uint64_t)-1};
	else if (!strcmp(mode, "select"))
		*state = (struct call_state){.rax = SYS_select,
					     .rdi = (uint64_t)ends[0] + 1,
					     .rsi = address(&readable),
					     .r8 = address(&select_time)};
	else if (!strncmp(mode, "epoll", 5)) {
		make_epoll(state);
		state->rax = SYS_epoll_wait;
		state->r10 = mode[5] ? TIME_MS : (uint64_t)-1;
	} else if (!strcmp(mode, "nanosleep") || !strcmp(mode, "nanosleep_interrupted"))
		*state = (struct call_state){.rax = SYS_nanosleep,
					     .rdi = address(&duration),
					     .rsi = address(&remaining)};
	else if (!strcmp(mode, "clock_nanosleep")) {
		duration.tv_sec += now.tv_sec;
		duration.tv_nsec += now.tv_nsec;
		if (duration.tv_nsec >= 1000000000) {
			duration.tv_sec++;
			duration.tv_nsec -= 1000000000;
		}
		*state = (struct call_state){.rax = SYS_clock_nanosleep,
					     .rdi = CLOCK_MONOTONIC,
					     .rsi = TIMER_ABSTIME,
					     .rdx = address(&duration)};
	} else if (strcmp(mode, "read") != 0 && strncmp(mode, "thread", 6) != 0)
		exit(98);
	if (!strcmp(mode, "nanosleep_interrupted"))
		use_handler(SA_RESTART);
}

/* A process that ends the wait after a line on standard input. */
static void start_waker(void)
{
	struct sockaddr_in name;
	socklen_t name_bytes = sizeof(name);
	char line[16];

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!read(STDIN_FILENO, line, 1);
	if (*line != '\n')
		_exit(1);
	*word = 1;
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
	(void)!write(ends[1], "x", 1);
	getsockname(listener, (struct sockaddr *)&name, &name_bytes);
	connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&name, name_bytes);
	_exit(0);
}

static void fill(struct call_state *state)
{
	state->rbx = 0x1111111111111111;
	state->rbp = 0x2222222222222222;
	state->r12 = 0x3333333333333333;
	state->r13 = 0x4444444444444444;
	state->r14 = 0x5555555555555555;
	state->r15 = 0x6666666666666666;
	state->flags = FLAGS;
	state->mxcsr = 0x7f80; /* rounds towards zero */
	state->fcw = 0x0f7f;
	state->has_avx512 = __builtin_cpu_supports("avx512f") != 0;
	for (size_t i = 0; i < sizeof(state->ymm); i++)
		((uint8_t *)state->ymm)[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(state->zmm31); i++)
		state->zmm31[i] = (uint8_t)(i * 11 + 3);
	state->k7 = 0xa5c3;
}

/* Prints the names of registers that are not as before. */
static void compare(const struct call_state *before, const struct call_state *after)
{
	const struct {
		const char *name;
		uint64_t before, after;
	} values[] = {
		{"rdi", before->rdi, after->rdi},
		{"rsi", before->rsi, after->rsi},
		{"rdx", before->rdx, after->rdx},
		{"r10", before->r10, after->r10},
		{"r8", before->r8, after->r8},
		{"r9", before->r9, after->r9},
		{"rbx", before->rbx, after->rbx},
		{"rbp", before->rbp, after->rbp},
		{"r12", before->r12, after->r12},
		{"r13", before->r13, after->r13},
		{"r14", before->r14, after->r14},
		{"r15", before->r15, after->r15},
		{"flags", before->flags & FLAGS_MASK, after->flags & FLAGS_MASK},
		{"mxcsr", before->mxcsr, after->mxcsr},
		{"fcw", before->fcw, after->fcw},
		{"k7", before->has_avx512 ? before->k7 : 0, before->has_avx512 ? after->k7 : 0},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (values[i].before != values[i].after)
			printf(" %s", values[i].name);
	if (memcmp(before->ymm, after->ymm, sizeof(before->ymm)) != 0)
		printf(" ymm");
	if (before->has_avx512 && memcmp(before->zmm31, after->zmm31, sizeof(before->zmm31)) != 0)
		printf(" zmm31");
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

__attribute__((noinline)) static void wait_here(const char *mode)
{
	struct call_state state = {0}, before;
	sigset_t mask, mask_after;
	double start_ms = now_ms(); /* clock_nanosleep() waits until a time that prepare() sets */

	prepare(mode, &state);
	fill(&state);
	before = state;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	errno = 4711;
	call_with_state(&state);
	printf("result %lld ms %.0f errno %d handled %d changed", (long long)state.rax,
	       now_ms() - start_ms, errno, (int)handled_count);
	compare(&before, &state);
	pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
	if (memcmp(&mask, &mask_after, 8) != 0)
		printf(" mask");
	printf("\n");
	fflush(stdout);
}

/* The wait is in a second thread, whose end joins this one: both block. */
static void *wait_in_thread(void *mode)
{
	wait_here(mode);
	return NULL;
}

static void wait_somewhere(char *mode)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (strncmp(mode, "thread", 6) != 0) {
		wait_here(mode);
		return;
	}
	pthread_attr_init(&attributes);
	if (!strcmp(mode, "thread_small"))
		pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
	if (pthread_create(&thread, &attributes, wait_in_thread, mode))
		exit(96);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	CUfunction kernel;
	CUcontext context;
	CUmodule module;
	CUdevice device;
	sigset_t blocked;
	char line[16];

	if (argc < 2 || pipe(ends))
		return 97;
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) || listen(listener, 1))
		return 97;
	polled = (struct pollfd){ends[0], POLLIN, 0};
	FD_SET(ends[0], &readable);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\n.address_size 64\n"
					".visible .entry kernel() { ret; }\n"));
	check(cuModuleGetFunction(&kernel, module, "kernel"));
	start_waker();
	printf("ready\n");
	fflush(stdout);
	wait_somewhere(argv[1]);
	(void)!fgets(line, sizeof(line), stdin);
	for (int i = 0; i < KERNELS; i++)
		check(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(cuCtxSynchronize());
	while (wait(NULL) > 0)
		;
	return 0;
}
