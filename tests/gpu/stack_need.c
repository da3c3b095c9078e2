/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_need [LIBXTRACE_INJECT [MAX_ADDED]]: finds the smallest stack on which cuLaunchKernel()
 * works, with and without tracing.
 *
 * Needs no toolkit: gcc -O2 -o stack_need stack_need.c -ldl -lpthread. Each attempt runs in its own
 * process, which launches on a stack of a given size above a guard area. Bisection finds the
 * smallest size at which the process succeeds. `used` is the number of bytes that one launch wrote
 * on a large stack. With MAX_ADDED, exits with 1 if tracing adds more bytes than that to any
 * result.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define LARGE_BYTES (1u << 20)
#define GUARD_BYTES (1u << 20)
#define STEP_BYTES  64u
#define PAINT	    0xa5
#define FAILED	    99

/* The functions of the driver API that this program uses. */
static int (*cuInit)(unsigned);
static int (*cuDeviceGet)(int *, int);
static int (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuCtxSetCurrent)(void *);
static int (*cuCtxSynchronize)(void);
static int (*cuModuleLoadData)(void **, const void *);
static int (*cuModuleGetFunction)(void **, void *, const char *);
static int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			     unsigned, void *, void **, void **);

static void *context, *function;
static ucontext_t small, back;
static int launches, failures;

static void must(int is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "stack_need: %s failed\n", what);
	_exit(FAILED);
}

static void gpu_begin(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry kernel() { ret; }\n";
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	const struct {
		const char *name;
		void *place;
	} functions[] = {
		{"cuInit", &cuInit},
		{"cuDeviceGet", &cuDeviceGet},
		{"cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain},
		{"cuCtxSetCurrent", &cuCtxSetCurrent},
		{"cuCtxSynchronize", &cuCtxSynchronize},
		{"cuModuleLoadData", &cuModuleLoadData},
		{"cuModuleGetFunction", &cuModuleGetFunction},
		{"cuLaunchKernel", &cuLaunchKernel},
	};
	void *module = NULL;
	int device = 0;

	must(driver != NULL, "dlopen of libcuda.so.1");
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *symbol = dlsym(driver, functions[i].name);

		must(symbol != NULL, functions[i].name);
		memcpy(functions[i].place, &symbol, sizeof(symbol));
	}
	must(!cuInit(0) && !cuDeviceGet(&device, 0) &&
		     !cuDevicePrimaryCtxRetain(&context, device) && !cuCtxSetCurrent(context) &&
		     !cuModuleLoadData(&module, ptx) &&
		     !cuModuleGetFunction(&function, module, "kernel"),
	     "the start of CUDA");
}

static void launch(void)
{
	for (int i = 0; i < launches; i++)
		failures += cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != 0;
}

/* Launches on a stack of that size. Returns how many bytes of it were written. */
static size_t launch_on(size_t stack_bytes, int count)
{
	size_t room = (stack_bytes + 4095) & ~(size_t)4095, untouched = 0;
	uint8_t *memory = mmap(NULL, GUARD_BYTES + room, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *stack = memory + GUARD_BYTES;

	must(memory != MAP_FAILED && !mprotect(memory, GUARD_BYTES, PROT_NONE), "mmap");
	memset(stack, PAINT, room);
	launches = count;
	getcontext(&small);
	small.uc_stack.ss_sp = stack;
	small.uc_stack.ss_size = stack_bytes;
	small.uc_link = &back;
	makecontext(&small, launch, 0);
	swapcontext(&back, &small);
	must(!cuCtxSynchronize() && !failures, "a launch");
	while (untouched < stack_bytes && stack[untouched] == PAINT)
		untouched++;
	return stack_bytes - untouched;
}

static size_t stack_bytes_asked, used_bytes;

static void *launch_in_thread(void *unused)
{
	must(!cuCtxSetCurrent(context), "cuCtxSetCurrent");
	used_bytes = launch_on(stack_bytes_asked, 1);
	return unused;
}

static void run_first(void)
{
	used_bytes = launch_on(stack_bytes_asked, 1);
}

static void run_later(void)
{
	for (int i = 0; i < 10; i++)
		must(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "a launch");
	must(!cuCtxSynchronize(), "cuCtxSynchronize");
	used_bytes = launch_on(stack_bytes_asked, 2000);
}

static void run_thread(void)
{
	pthread_t thread;

	must(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "a launch");
	must(!pthread_create(&thread, NULL, launch_in_thread, NULL), "pthread_create");
	pthread_join(thread, NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"first launch of the process", run_first},
	{"first launch of a thread", run_thread},
	{"later launches", run_later},
};
#define CASES (sizeof(cases) / sizeof(*cases))

static int child(int which, size_t stack_bytes)
{
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	stack_bytes_asked = stack_bytes;
	gpu_begin();
	cases[which].run();
	printf("%zu\n", used_bytes);
	return 0;
}

/* Returns the number of bytes used, or 0 if the attempt failed. */
static size_t attempt(const char *self, size_t which, size_t stack_bytes, const char *tracer)
{
	char text[64] = "", arguments[2][32];
	int fds[2], status = 0;
	ssize_t length;
	pid_t pid;

	snprintf(arguments[0], sizeof(arguments[0]), "%zu", which);
	snprintf(arguments[1], sizeof(arguments[1]), "%zu", stack_bytes);
	must(!pipe(fds), "pipe");
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		if (tracer) {
			setenv("CUDA_INJECTION64_PATH", tracer, 1);
			setenv("NVTX_INJECTION64_PATH", tracer, 1);
		}
		execl(self, self, "--child", arguments[0], arguments[1], NULL);
		_exit(FAILED);
	}
	close(fds[1]);
	length = read(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == FAILED)
		exit(FAILED);
	return length > 0 && WIFEXITED(status) && !WEXITSTATUS(status) ? strtoull(text, NULL, 10)
								       : 0;
}

static size_t smallest(const char *self, size_t which, const char *tracer, size_t *used)
{
	size_t fails = 0, works = LARGE_BYTES;

	*used = attempt(self, which, LARGE_BYTES, tracer);
	if (!*used) {
		printf("does not work on %u bytes\n", LARGE_BYTES);
		exit(FAILED);
	}
	/* Start the search near the size that a launch used on the large stack. */
	fails = *used / STEP_BYTES > 2 ? (*used / STEP_BYTES - 2) * STEP_BYTES : 0;
	if (fails && attempt(self, which, fails, tracer)) {
		works = fails;
		fails = 0;
	}
	for (size_t bytes = (*used / STEP_BYTES + 1) * STEP_BYTES; bytes < works; bytes *= 2) {
		if (attempt(self, which, bytes, tracer))
			works = bytes;
		else
			fails = bytes;
	}
	while (works - fails > STEP_BYTES) {
		size_t middle = (works + fails) / 2 / STEP_BYTES * STEP_BYTES;

		if (attempt(self, which, middle, tracer))
			works = middle;
		else
			fails = middle;
	}
	return works;
}

int main(int argc, char **argv)
{
	const char *tracer = argc > 1 ? argv[1] : NULL;
	size_t max_added = argc > 2 ? strtoull(argv[2], NULL, 10) : SIZE_MAX;
	int result = 0;

	if (argc == 4 && !strcmp(argv[1], "--child"))
		return child(atoi(argv[2]), strtoull(argv[3], NULL, 10));
	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; i < CASES; i++) {
		size_t used, bare = smallest("/proc/self/exe", i, NULL, &used), traced;

		printf("%-28s bare: works on %zu bytes, used %zu", cases[i].name, bare, used);
		if (tracer) {
			traced = smallest("/proc/self/exe", i, tracer, &used);
			printf("; traced: works on %zu bytes, used %zu", traced, used);
			if (traced > bare && traced - bare > max_added)
				result = 1;
		}
		printf("\n");
	}
	return result;
}
