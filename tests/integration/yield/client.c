/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client MODE…: a program with its own profiler, which uses CUPTI as PyTorch's does: a subscriber,
 * buffers that are not zeroed, CUPTI's own clock. It launches 100 kernels, then 200 under its
 * profiler, then 50 more, and prints what the profiler saw. MODE is what the profiler does at the
 * end:
 *
 *	stays		stops its records and keeps its subscriber, as PyTorch's does
 *	leaves		unsubscribes
 *	finalizes	unsubscribes and finalises CUPTI
 *	activity	never subscribes; only asks for records
 *	tries		enables kinds, but asks for no records
 *	forks		stays; then a child launches too
 *	twice		leaves, and returns a while later
 *	clock		sets its own clock, the monotonic one, and leaves
 *	keeps		unsubscribes at once, but keeps recording
 *	late		leaves, and asks for its records a while later
 *	reloads		replaces the module while its profiler runs, and leaves
 *	loading		starts while another thread loads the library given as the next argument
 */
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_abi/cupti_abi.h"

#define BUFFER_BYTES (256u << 10)

/*
 * X(name, arguments, their names). Called as call_NAME(): linked, or with BY_DLSYM by a pointer
 * that is looked up when the profiler starts, after CUDA.
 */
#define FUNCTIONS(X)                                                                               \
	X(cuptiSubscribe, (void **out, xt_cupti_callback callback, void *userdata),                \
	  (out, callback, userdata))                                                               \
	X(cuptiUnsubscribe, (void *subscriber), (subscriber))                                      \
	X(cuptiEnableCallback,                                                                     \
	  (uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid),                     \
	  (enable, subscriber, domain, cbid))                                                      \
	X(cuptiActivityRegisterCallbacks,                                                          \
	  (xt_cupti_buffer_requested requested, xt_cupti_buffer_completed completed),              \
	  (requested, completed))                                                                  \
	X(cuptiActivityRegisterTimestampCallback, (xt_cupti_timestamp clock), (clock))             \
	X(cuptiActivityEnable, (uint32_t kind), (kind))                                            \
	X(cuptiActivityDisable, (uint32_t kind), (kind))                                           \
	X(cuptiActivityGetAttribute, (uint32_t attribute, size_t * bytes, void *value),            \
	  (attribute, bytes, value))                                                               \
	X(cuptiActivityFlushAll, (uint32_t flag), (flag))                                          \
	X(cuptiActivityGetNextRecord,                                                              \
	  (uint8_t * buffer, size_t bytes, struct cupti_activity * *record),                       \
	  (buffer, bytes, record))                                                                 \
	X(cuptiFinalize, (void), ())

#ifdef BY_DLSYM
#define CALL(name, arguments, passed)                                                              \
	static int(*name) arguments;                                                               \
	static int call_##name arguments                                                           \
	{                                                                                          \
		return name passed;                                                                \
	}
FUNCTIONS(CALL)

static void find_cupti(void)
{
	void *library = dlopen("libcupti.so", RTLD_NOW);

#define FIND(name, arguments, passed) *(void **)&name = library ? dlsym(library, #name) : NULL;
	FUNCTIONS(FIND)
	if (!cuptiFinalize)
		exit(98);
}
#else
#define CALL(name, arguments, passed)                                                              \
	int name arguments;                                                                        \
	static int call_##name arguments                                                           \
	{                                                                                          \
		return name passed;                                                                \
	}
FUNCTIONS(CALL)

static void find_cupti(void)
{
}
#endif

/* The GPU. */

static CUfunction function;

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		exit(99);
}

static CUmodule module;

static void load_kernel(const char *name)
{
	char ptx[128];

	snprintf(ptx, sizeof(ptx),
		 ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry %s() { ret; }\n",
		 name);
	check(cuModuleLoadData(&module, ptx));
	check(cuModuleGetFunction(&function, module, name));
}

static void gpu_begin(void)
{
	CUcontext context;
	CUdevice device;

	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	load_kernel("kernel");
}

/* The new kernel's name may take the place of the old one's. */
static void replace_module(void)
{
	check(cuModuleUnload(module));
	load_kernel("behind");
}

static void launch(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The profiler. */

static void *subscriber;
static uint64_t began_ns, ended_ns; /* on the clock that its records should use */
static unsigned kernels, other_records, wrong_times, foreign_buffers;
static _Atomic unsigned buffers_out;

static void callback(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	(void)userdata, (void)domain, (void)cbid, (void)data;
}

/* Content that looks like records if CUPTI does not zero it. */
static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*buffer = malloc(BUFFER_BYTES);
	memset(*buffer, 0x0a, BUFFER_BYTES);
	*bytes = BUFFER_BYTES;
	*max_records = 0;
	buffers_out++;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	struct cupti_activity *record = NULL;

	(void)context, (void)stream;
	if (bytes != BUFFER_BYTES || !buffers_out) {
		foreign_buffers++;
		return;
	}
	buffers_out--;
	while (!call_cuptiActivityGetNextRecord(buffer, valid, &record)) {
		const struct cupti_activity_kernel *kernel = (const void *)record;

		if (record->kind != XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL) {
			other_records++;
			continue;
		}
		kernels++;
		if (kernel->start_ns < began_ns || kernel->end_ns < kernel->start_ns ||
		    kernel->end_ns > ended_ns)
			wrong_times++;
	}
	free(buffer);
}

static uint64_t monotonic_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static void unsubscribe(void)
{
	call_cuptiUnsubscribe(subscriber);
	subscriber = NULL;
}

/*
 * Waits for the tracer's message that it has returned. CLIENT_WAITS names the file that is its
 * stderr.
 */
static void wait_for_return(void)
{
	static unsigned returns;
	const char *path = getenv("CLIENT_WAITS");
	char text[4096] = "", *at = text;
	unsigned found = 0;
	FILE *said;

	returns++;
	for (int i = 0; path && i < 2000 && found < returns; i++) {
		usleep(10000);
		said = fopen(path, "re");
		text[said ? fread(text, 1, sizeof(text) - 1, said) : 0] = '\0';
		if (said)
			fclose(said);
		found = 0;
		for (at = text; (at = strstr(at, "recording resumed")); at++)
			found++;
		found += strstr(text, "cannot resume recording") != NULL;
	}
}

static void leave(const char *mode)
{
	if (subscriber && strcmp(mode, "stays") != 0 && strcmp(mode, "forks") != 0)
		unsubscribe();
	if (!strcmp(mode, "finalizes"))
		call_cuptiFinalize();
	if (strcmp(mode, "stays") != 0 && strcmp(mode, "forks") != 0 &&
	    strcmp(mode, "activity") != 0)
		wait_for_return();
}

static sem_t is_loading, may_go_on;
static const char *slow_library;

__attribute__((visibility("default"))) void client_is_loading(void);

/* Called by the library while it is loaded: the loader's lock is held until this returns. */
void client_is_loading(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 20;
	sem_post(&is_loading);
	if (sem_clockwait(&may_go_on, CLOCK_MONOTONIC, &until))
		printf("the profiler waits for the loader\n");
}

static void *load(void *unused)
{
	if (!dlopen(slow_library, RTLD_NOW))
		exit(97);
	return unused;
}

static pthread_t begin_to_load(void)
{
	pthread_t thread;

	sem_init(&is_loading, 0, 0);
	sem_init(&may_go_on, 0, 0);
	pthread_create(&thread, NULL, load, NULL);
	sem_wait(&is_loading);
	return thread;
}

static int profile(const char *mode)
{
	bool loads = !strcmp(mode, "loading");
	pthread_t loading = 0;
	clockid_t clock = strcmp(mode, "clock") ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	size_t bytes = 1;
	uint8_t zeroed = 2;
	int result = 0;

	kernels = other_records = wrong_times = 0;
	find_cupti();
	if (loads)
		loading = begin_to_load();
	if (strcmp(mode, "activity") != 0)
		result = call_cuptiSubscribe(&subscriber, callback, NULL);
	if (!result && subscriber)
		result = call_cuptiEnableCallback(1, subscriber, XT_CUPTI_CB_DOMAIN_RESOURCE,
						  XT_CUPTI_RESOURCE_CONTEXT_CREATED);
	if (result) {
		printf("profiler: error %d\n", result);
		return result;
	}
	if (clock == CLOCK_MONOTONIC)
		call_cuptiActivityRegisterTimestampCallback(monotonic_ns);
	call_cuptiActivityRegisterCallbacks(requested, completed);
	began_ns = now_ns(clock);
	ended_ns = UINT64_MAX;
	call_cuptiActivityEnable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	if (loads) {
		sem_post(&may_go_on);
		pthread_join(loading, NULL);
	}
	if (!strcmp(mode, "keeps")) {
		unsubscribe();
		usleep(600000); /* the tracer would have returned */
	}
	launch(200);
	check(cuCtxSynchronize());
	ended_ns = now_ns(clock);
	if (!strcmp(mode, "reloads"))
		replace_module();
	call_cuptiActivityDisable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	call_cuptiActivityGetAttribute(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &zeroed);
	if (!strcmp(mode, "late"))
		leave(mode);
	call_cuptiActivityFlushAll(XT_CUPTI_FLUSH_FORCED);
	printf("profiler: %u kernels, %u other records, %u wrong times, %u foreign buffers, "
	       "zeroed %u\n",
	       kernels, other_records, wrong_times, foreign_buffers, zeroed);
	return 0;
}

/* Tests which kinds exist, like some libraries. */
static int try_kinds(void)
{
	find_cupti();
	call_cuptiActivityEnable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	if (!call_cuptiActivityEnable(9999) || !call_cuptiActivityRegisterCallbacks(NULL, NULL))
		return 1;
	printf("tried\n");
	return 1;
}

static void fork_and_launch(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		/* CUDA does not work in a forked child, but CUPTI's functions can be called. */
		call_cuptiActivityDisable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
		call_cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY);
		_exit(3);
	}
	waitpid(child, &status, 0);
	printf("child: %d\n", WEXITSTATUS(status));
}

/* Two functions, so that their launches have different call paths. */
static __attribute__((noinline, noclone)) void work_before(void)
{
	launch(100);
	check(cuCtxSynchronize());
}

static __attribute__((noinline, noclone)) void work_behind(void)
{
	launch(50);
	check(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "stays";

	slow_library = argc > 2 ? argv[2] : "";
	gpu_begin();
	work_before();
	/* The tracer reads a kernel's name some time after the launch, from the module's memory. */
	if (!strcmp(mode, "reloads"))
		usleep(500000);
	if (!(strcmp(mode, "tries") ? profile(mode) : try_kinds()) && strcmp(mode, "late") != 0)
		leave(mode);
	if (!strcmp(mode, "twice") && !profile(mode))
		leave(mode);
	if (!strcmp(mode, "forks"))
		fork_and_launch();
	work_behind();
	return 0;
}
