/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life CASE [ARGUMENT…]: GPU functions, what a process can see of itself, and ways to end.
 */
#include "life.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
const char *own_path;

void tell(const char *format, ...)
{
	char line[8192];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, line, (size_t)length) < 0)
		return; /* stdout may be closed */
}

/* GPU functions. */

static CUcontext context;
static CUfunction function;

static void check(CUresult result, const char *call)
{
	if (result == CUDA_SUCCESS)
		return;
	tell("%s: error %d\n", call, (int)result);
	_exit(99);
}
#define CHECK(call) check((call), #call)

#define PTX_OF(kernel)                                                                             \
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry " kernel "() { ret; }\n"
static const char ptx[] = PTX_OF("kernel"), ptx_of_kernel[] = PTX_OF("%s");

void gpu_load(const char *kernel)
{
	char text[256];
	CUmodule module;

	snprintf(text, sizeof(text), ptx_of_kernel, kernel);
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&function, module, kernel));
}

void gpu_begin(void)
{
	CUdevice device;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	gpu_load("kernel");
}

void gpu_enter_thread(void)
{
	CHECK(cuCtxSetCurrent(context));
}

void gpu_launch(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	CHECK(cuCtxSynchronize());
}

void gpu_launch_alone(void)
{
	CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

void gpu_call_in_vain(unsigned count)
{
	void *parameters[1] = {NULL};

	for (unsigned i = 0; i < count; i++)
		cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, parameters);
}

int gpu_launch_in_new_context(unsigned count)
{
	CUcontext other;
	CUmodule module;
	CUfunction kernel;
	CUdevice device;
	CUresult result;

	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&other, NULL, 0, device));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&kernel, module, "kernel"));
	for (unsigned i = 0; i < count; i++)
		CHECK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	CHECK(cuCtxSynchronize());
	result = cuCtxDestroy(other);
	CHECK(cuCtxSetCurrent(context));
	return (int)result;
}

int gpu_release(void)
{
	CUdevice device;

	CHECK(cuDeviceGet(&device, 0));
	return (int)cuDevicePrimaryCtxRelease(device);
}

int gpu_reset(void)
{
	CUdevice device;

	CHECK(cuDeviceGet(&device, 0));
	return (int)cuDevicePrimaryCtxReset(device);
}

#define ERRNO_OF(call)                                                                             \
	do {                                                                                       \
		errno = 4711;                                                                      \
		tell("%s %d", #call, (int)(call));                                                 \
		tell(" errno %d\n", errno);                                                        \
	} while (0)

static void *errno_in_thread(void *unused)
{
	ERRNO_OF(cuCtxSetCurrent(context));
	ERRNO_OF(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	return unused;
}

void tell_errno_of_calls(void)
{
	CUdeviceptr memory;
	CUdevice device;
	CUmodule module;
	pthread_t thread;
	char bytes[64] = "";

	ERRNO_OF(cuInit(0));
	ERRNO_OF(cuDeviceGet(&device, 0));
	ERRNO_OF(cuDevicePrimaryCtxRetain(&context, device));
	ERRNO_OF(cuCtxSetCurrent(context));
	ERRNO_OF(cuModuleLoadData(&module, ptx));
	ERRNO_OF(cuModuleGetFunction(&function, module, "kernel"));
	ERRNO_OF(cuModuleGetFunction(&function, module, "no_such_kernel"));
	cuModuleGetFunction(&function, module, "kernel");
	for (int i = 0; i < 3; i++)
		ERRNO_OF(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	ERRNO_OF(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	ERRNO_OF(cuMemAlloc(&memory, sizeof(bytes)));
	ERRNO_OF(cuMemcpyHtoD(memory, bytes, sizeof(bytes)));
	ERRNO_OF(cuMemsetD8(memory, 1, sizeof(bytes)));
	ERRNO_OF(cuMemcpyDtoH(bytes, memory, sizeof(bytes)));
	ERRNO_OF(cuMemFree(memory));
	ERRNO_OF(cuCtxSynchronize());
	pthread_create(&thread, NULL, errno_in_thread, NULL);
	pthread_join(thread, NULL);
}

/* Functions that inspect the process. */

void wait_for_state_of_main_thread(char wanted)
{
	char text[512], path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (state != wanted) {
		FILE *file = fopen(path, "re");
		const char *end = NULL;

		if (file && fgets(text, sizeof(text), file))
			end = strrchr(text, ')');
		state = end ? end[2] : 0;
		if (file)
			fclose(file);
		usleep(1000);
	}
}

#define DESCRIPTORS_MAX 64

struct descriptor {
	int number;
	char target[512];
};

static size_t list_descriptors(struct descriptor *list)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t count = 0;

	while (folder && count < DESCRIPTORS_MAX && (entry = readdir(folder))) {
		struct descriptor *one = &list[count];
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, one->target,
					    sizeof(one->target) - 1);

		one->number = atoi(entry->d_name);
		if (length < 0 || one->number == dirfd(folder))
			continue;
		one->target[length] = '\0';
		count++;
	}
	closedir(folder);
	return count;
}

/* A pipe with both ends in this process, such as libunwind opens. */
static bool is_own_pipe(const struct descriptor *list, size_t count, const char *target)
{
	unsigned ends = 0;

	for (size_t i = 0; i < count; i++)
		ends += !strcmp(list[i].target, target);
	return ends == 2 && !strncmp(target, "pipe:", 5);
}

void tell_descriptors(bool traced)
{
	struct descriptor list[DESCRIPTORS_MAX];
	const char *data = traced ? getenv("XTRACE_DATA") : NULL;
	size_t count;

	if (traced)
		usleep(50000); /* at start, the tracer's threads read /proc */
	count = list_descriptors(list);
	for (size_t i = 0; i < count; i++) {
		if (data && !strncmp(list[i].target, data, strlen(data)))
			continue;
		if (is_own_pipe(list, count, list[i].target))
			continue;
		/* Pipe numbers differ between runs. */
		tell("descriptor %d %.*s\n", list[i].number, (int)strcspn(list[i].target, "["),
		     list[i].target);
	}
}

void tell_environment(void)
{
	/* Variables that load the tracer: they differ by design. */
	static const char *const left_out[] = {
		"LD_PRELOAD=", "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH="};

	for (char **variable = environ; *variable; variable++) {
		bool is_left_out = false;

		for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
			is_left_out |= !strncmp(*variable, left_out[i], strlen(left_out[i]));
		if (!is_left_out)
			tell("%s\n", *variable);
	}
}

/* Ways to end. */

static int main_return(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(5);
	return 7;
}

static void *exit_9(void *unused)
{
	gpu_enter_thread();
	gpu_launch(1);
	exit(9);
	return unused;
}

static int exit_in_thread(char **unused)
{
	pthread_t thread;

	(void)unused;
	gpu_begin();
	gpu_launch(1);
	pthread_create(&thread, NULL, exit_9, NULL);
	pthread_join(thread, NULL);
	for (;;)
		pause();
	return 0;
}

/* Ways to call the C library's _exit(). */
static int exit_at_once(char **arguments)
{
	gpu_begin();
	gpu_launch(5);
	if (!arguments[0])
		_exit(5);
	if (!strcmp(arguments[0], "found"))
		((void (*)(int))dlsym(RTLD_DEFAULT, "_exit"))(5);
	if (!strcmp(arguments[0], "standard"))
		_Exit(5);
	if (!strcmp(arguments[0], "raw"))
		syscall(SYS_exit_group, 5);
	/* from a library that is loaded now */
	((void (*)(int))dlsym(dlopen(arguments[0], RTLD_NOW), "plugin_exit"))(5);
	return 1;
}

static atomic_uint launched;

static void *launch_for_ever(void *unused)
{
	gpu_enter_thread();
	for (;; launched++)
		gpu_launch_alone();
	return unused;
}

/* While other threads launch. */
static int exit_at_once_while_launching(char **unused)
{
	pthread_t threads[3];

	(void)unused;
	gpu_begin();
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, launch_for_ever, NULL);
	while (launched < 1000)
		usleep(1000);
	_exit(5);
}

static atomic_bool leaves;

/* Waits until the main thread does nothing but wait. */
static void wait_for_main_thread(void)
{
	while (!leaves)
		usleep(1000);
	wait_for_state_of_main_thread('S');
}

static void *exit_second(void *unused)
{
	wait_for_main_thread();
	_exit(6);
	return unused;
}

/* The status of the first one counts. */
static int exit_at_once_twice(char **unused)
{
	pthread_t thread;

	(void)unused;
	gpu_begin();
	gpu_launch(5);
	pthread_create(&thread, NULL, exit_second, NULL);
	leaves = true;
	_exit(5);
}

static void exit_in_handler(int number)
{
	_exit(number == SIGUSR1 ? 5 : 6);
}

static void *interrupt(void *main_thread)
{
	wait_for_main_thread();
	pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
	return NULL;
}

/* Holds the loader's lock, which a query for loaded libraries needs. */
static int load_and_interrupt(struct dl_phdr_info *info, size_t info_bytes, void *plugin)
{
	(void)info, (void)info_bytes;
	dlopen(plugin, RTLD_NOW);
	usleep(100000);
	raise(SIGUSR1);
	return 1;
}

/* "idle"; "busy": in a call that waits for the GPU; or "loading" a plugin. */
static int exit_by_signal(char **arguments)
{
	struct sigaction action = {.sa_handler = exit_in_handler};
	pthread_t self = pthread_self(), thread;

	sigaction(SIGUSR1, &action, NULL);
	gpu_begin();
	if (!strcmp(arguments[0], "idle")) {
		gpu_launch(5);
		raise(SIGUSR1);
	}
	if (!strcmp(arguments[0], "loading")) {
		gpu_launch(5);
		dl_iterate_phdr(load_and_interrupt, arguments[1]);
	}
	pthread_create(&thread, NULL, interrupt, &self);
	gpu_launch_alone(); /* takes seconds: see the test */
	leaves = true;
	gpu_launch(0);
	return 1;
}

static void at_quick_exit_tell(void)
{
	tell("at_quick_exit\n");
}

static int exit_quickly(char **unused)
{
	(void)unused;
	at_quick_exit(at_quick_exit_tell);
	gpu_begin();
	gpu_launch(5);
	quick_exit(6);
}

static int abort_itself(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(5);
	abort();
}

static int terminate_itself(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(5);
	raise(SIGTERM);
	return 1;
}

static void on_fault(int number)
{
	tell("signal %d\n", number); /* raise it again, with SA_RESETHAND, to die of it */
}

static int fault(char **unused)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND};
	volatile int *nowhere = NULL;

	(void)unused;
	sigaction(SIGSEGV, &action, NULL);
	gpu_begin();
	gpu_launch(5);
	return *nowhere;
}

static void *outlive_main(void *unused)
{
	usleep(20000);
	gpu_enter_thread();
	gpu_launch(5);
	tell("the last thread\n");
	exit(4);
	return unused;
}

static int main_thread_exits(char **unused)
{
	pthread_t thread;

	(void)unused;
	gpu_begin();
	gpu_launch(1);
	pthread_create(&thread, NULL, outlive_main, NULL);
	pthread_exit(NULL);
}

static unsigned launches_after_end = 1;

static void launch_at_exit(void)
{
	gpu_launch(1);
	tell("at exit\n");
}

static void launch_after_end(void)
{
	gpu_launch(launches_after_end);
	tell("after the end\n");
}

/*
 * Exit handlers registered before and after the tracer started. One runs after the tracer has shut
 * down.
 */
static int launches_at_exit(char **arguments)
{
	if (arguments[0])
		launches_after_end = (unsigned)atoi(arguments[0]);
	atexit(launch_after_end);
	gpu_begin();
	atexit(launch_at_exit);
	gpu_launch(1);
	return 3;
}

static int look_at_errno(char **unused)
{
	(void)unused;
	tell_errno_of_calls();
	return 0;
}

static int look_at_environment(char **unused)
{
	char **before = environ;

	(void)unused;
	tell_environment();
	gpu_begin();
	gpu_launch(1);
	tell_environment();
	/* Another thread may be reading the environment. */
	tell("the environment has %s\n", environ == before ? "not moved" : "moved");
	return 0;
}

static int look_at_descriptors(char **unused)
{
	(void)unused;
	tell_descriptors(false);
	gpu_begin();
	gpu_launch(1);
	tell_descriptors(true);
	return 0;
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
	ticks += number != 0;
}

static void *launch_many(void *unused)
{
	gpu_enter_thread();
	gpu_launch(2000);
	return unused;
}

/* Sends signals to all threads at any time, with and without SA_RESTART. */
static int signals(char **unused)
{
	struct sigaction action = {.sa_handler = on_tick};
	pthread_t threads[4];

	(void)unused;
	sigaction(SIGUSR1, &action, NULL);
	gpu_begin();
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, launch_many, NULL);
	for (int i = 0; i < 400; i++) {
		pthread_kill(threads[i % 4], SIGUSR1);
		usleep(20);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	gpu_launch(1);
	tell("ticks %s\n", ticks > 0 ? "came" : "did not come");
	return 0;
}

const struct life lives[] = {
	{"main_return", main_return},
	{"exit_in_thread", exit_in_thread},
	{"_exit", exit_at_once},
	{"_exit_while_launching", exit_at_once_while_launching},
	{"_exit_twice", exit_at_once_twice},
	{"_exit_in_handler", exit_by_signal},
	{"quick_exit", exit_quickly},
	{"abort", abort_itself},
	{"terminate", terminate_itself},
	{"fault", fault},
	{"pthread_exit", main_thread_exits},
	{"atexit", launches_at_exit},
	{"errno", look_at_errno},
	{"environment", look_at_environment},
	{"descriptors", look_at_descriptors},
	{"signals", signals},
	{NULL, NULL},
};

static const struct life *find(const struct life *life, const char *name)
{
	while (life->name && strcmp(life->name, name))
		life++;
	return life->name ? life : NULL;
}

int main(int argc, char **argv)
{
	const struct life *const others[] = {child_lives, thread_lives, limit_lives};
	const struct life *life = argc > 1 ? find(lives, argv[1]) : NULL;

	own_path = argv[0];
	for (size_t i = 0; !life && argc > 1 && i < sizeof(others) / sizeof(others[0]); i++)
		life = find(others[i], argv[1]);
	if (!life) {
		fprintf(stderr, "usage: life CASE [ARGUMENT]...\n");
		return 98;
	}
	return life->run(argv + 2);
}
