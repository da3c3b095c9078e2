/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels whose names are their call paths through functions a, b and c, so that a test
 * can check the paths. Several threads launch on several streams, in an order given by the seed.
 *
 * The ledger file survives any end of the program. Each thread records its launches in it, in
 * order, after they return. It has one struct ledger_page per thread.
 */
#include <cuda.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH_MAX   4
#define STREAMS_MAX 16
#define NAME_BYTES  (DEPTH_MAX + 8)
#define CHECK(call) check((call), #call)

#define LEDGER_ENTRIES (1u << 20)

struct ledger_page {
	unsigned tid;
	unsigned count; /* entries in use */
	struct ledger_entry {
		unsigned blocks;
		char path[DEPTH_MAX];
	} entries[LEDGER_ENTRIES];
};

struct job {
	struct ledger_page *ledger; /* NULL: none */
	CUcontext context;
	CUmodule module;
	unsigned launches, streams, sync_every;
	unsigned long long seed;
	/* The launch in preparation. */
	char path[DEPTH_MAX + 1];
	unsigned depth;
	CUstream stream[STREAMS_MAX];
};

static void check(CUresult result, const char *call)
{
	const char *text = "unknown";

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	fprintf(stderr, "%s: %s\n", call, text);
	exit(1);
}

static unsigned next_random(struct job *job)
{
	job->seed = job->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(job->seed >> 33);
}

static void note(struct ledger_page *ledger, unsigned blocks, const char *path)
{
	struct ledger_entry *entry = &ledger->entries[ledger->count];

	if (ledger->count == LEDGER_ENTRIES)
		return;
	entry->blocks = blocks;
	memcpy(entry->path, path, DEPTH_MAX);
	__atomic_store_n(&ledger->count, ledger->count + 1, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void launch(struct job *job)
{
	char name[NAME_BYTES];
	CUfunction function;
	unsigned blocks = 1 + next_random(job) % 64;

	snprintf(name, sizeof(name), "k_%s", job->path);
	CHECK(cuModuleGetFunction(&function, job->module, name));
	CHECK(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0,
			     job->stream[next_random(job) % job->streams], NULL, NULL));
	if (job->ledger)
		note(job->ledger, blocks, job->path);
	__asm__ volatile("");
}

static void step(struct job *job, unsigned at);

#define PATH_FUNCTION(letter)                                                                      \
	static __attribute__((noinline)) void path_##letter(struct job *job, unsigned at)          \
	{                                                                                          \
		step(job, at);                                                                     \
		__asm__ volatile("" ::: "memory");                                                 \
	}
PATH_FUNCTION(a)
PATH_FUNCTION(b)
PATH_FUNCTION(c)

/* Inlined into the path functions, so that only they are in the path. */
static inline __attribute__((always_inline)) void step_inline(struct job *job, unsigned at)
{
	static void (*const functions[])(struct job *, unsigned) = {path_a, path_b, path_c};

	if (at == job->depth)
		launch(job);
	else
		functions[job->path[at] - 'a'](job, at + 1);
}

static __attribute__((noinline)) void step(struct job *job, unsigned at)
{
	step_inline(job, at);
	__asm__ volatile("" ::: "memory");
}

static void *run(void *arg)
{
	struct job *job = arg;

	if (job->ledger)
		job->ledger->tid = (unsigned)gettid();
	CHECK(cuCtxSetCurrent(job->context));
	for (unsigned i = 0; i < job->streams; i++)
		CHECK(cuStreamCreate(&job->stream[i], CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < job->launches; i++) {
		job->depth = 1 + next_random(job) % DEPTH_MAX;
		for (unsigned at = 0; at < job->depth; at++)
			job->path[at] = (char)('a' + next_random(job) % 3);
		job->path[job->depth] = '\0';
		step(job, 0);
		if (job->sync_every && i % job->sync_every == job->sync_every - 1)
			CHECK(cuStreamSynchronize(job->stream[0]));
	}
	for (unsigned i = 0; i < job->streams; i++)
		CHECK(cuStreamSynchronize(job->stream[i]));
	return NULL;
}

/* PTX with an empty kernel for every path. */
static char *make_ptx(void)
{
	size_t capacity = 64 << 10, used;
	char *ptx = malloc(capacity);

	if (!ptx)
		exit(1);
	used = (size_t)snprintf(ptx, capacity, ".version 7.0\n.target sm_70\n.address_size 64\n");
	for (unsigned depth = 1; depth <= DEPTH_MAX; depth++) {
		unsigned paths = 1;

		for (unsigned i = 0; i < depth; i++)
			paths *= 3;
		for (unsigned number = 0; number < paths; number++) {
			char path[DEPTH_MAX + 1] = "";
			unsigned rest = number;

			for (unsigned i = 0; i < depth; i++, rest /= 3)
				path[i] = (char)('a' + rest % 3);
			used += (size_t)snprintf(ptx + used, capacity - used,
						 ".visible .entry k_%s() { ret; }\n", path);
		}
	}
	return ptx;
}

static unsigned number_argument(int argc, char **argv, int index, unsigned fallback)
{
	return argc > index ? (unsigned)strtoul(argv[index], NULL, 10) : fallback;
}

/* One page per thread. */
static struct ledger_page *open_ledger(const char *path, unsigned threads)
{
	size_t bytes = threads * sizeof(struct ledger_page);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void *pages;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		exit(1);
	pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		exit(1);
	close(fd);
	return pages;
}

/* launcher THREADS STREAMS LAUNCHES SEED SYNC_EVERY [LEDGER] */
int main(int argc, char **argv)
{
	unsigned threads = number_argument(argc, argv, 1, 1);
	unsigned streams = number_argument(argc, argv, 2, 1);
	unsigned launches = number_argument(argc, argv, 3, 1000);
	unsigned seed = number_argument(argc, argv, 4, 1);
	unsigned sync_every = number_argument(argc, argv, 5, 0);
	struct ledger_page *ledger = argc > 6 ? open_ledger(argv[6], threads) : NULL;
	struct job *jobs = calloc(threads, sizeof(*jobs));
	pthread_t *handles = calloc(threads, sizeof(*handles));
	CUcontext context;
	CUmodule module;
	CUdevice device;
	char *ptx = make_ptx();

	if (!jobs || !handles || streams > STREAMS_MAX)
		return 1;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	for (unsigned i = 0; i < threads; i++) {
		jobs[i] = (struct job){.context = context,
				       .module = module,
				       .launches = launches,
				       .streams = streams,
				       .sync_every = sync_every,
				       .ledger = ledger ? &ledger[i] : NULL,
				       .seed = seed * 1000003ULL + i};
		if (pthread_create(&handles[i], NULL, run, &jobs[i]))
			return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(handles[i], NULL);
	CHECK(cuCtxSynchronize());
	printf("%u launches\n", threads * launches);
	free(ptx);
	free(jobs);
	free(handles);
	return 0;
}
