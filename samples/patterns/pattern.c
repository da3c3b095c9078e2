/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the patterns; see pattern.h.
 */
#include "pattern.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const char pattern_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	"\n"
	"// returns when so many nanoseconds have passed\n"
	".visible .entry spin(\n"
	"  .param .u64 p_ns)\n"
	"{\n"
	"  .reg .pred more;\n"
	"  .reg .u64 ns, start, now;\n"
	"\n"
	"  ld.param.u64 ns, [p_ns];\n"
	"  mov.u64 start, %globaltimer;\n"
	"again:\n"
	"  mov.u64 now, %globaltimer;\n"
	"  sub.u64 now, now, start;\n"
	"  setp.lt.u64 more, now, ns;\n"
	"  @more bra again;\n"
	"  ret;\n"
	"}\n";
/* clang-format on */

void pattern_check(CUresult result, const char *call)
{
	const char *text = NULL;

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	fprintf(stderr, "%s: %s (%d)\n", call, text ? text : "unknown error", result);
	exit(1);
}

void pattern_begin(struct pattern *p, int argc, char **argv)
{
	if (argc != 2 || (strcmp(argv[1], "bad") && strcmp(argv[1], "good"))) {
		fprintf(stderr, "usage: %s bad|good\n", argv[0]);
		exit(2);
	}
	p->is_bad = !strcmp(argv[1], "bad");
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&p->device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&p->context, p->device));
	CHECK(cuCtxSetCurrent(p->context));
	CHECK(cuModuleLoadData(&p->module, pattern_ptx));
	CHECK(cuModuleGetFunction(&p->spin, p->module, "spin"));
	CHECK(cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
}

char *pattern_input(const struct pattern *p, size_t bytes)
{
	char *input = NULL;

	if (p->is_bad)
		input = malloc(bytes);
	else
		CHECK(cuMemHostAlloc((void **)&input, bytes, 0));
	if (!input)
		exit(1);
	return memset(input, 1, bytes);
}

int pattern_end(struct pattern *p)
{
	CHECK(cuCtxSynchronize());
	CHECK(cuModuleUnload(p->module));
	CHECK(cuDevicePrimaryCtxRelease(p->device));
	return 0;
}

STACK_FRAME void pattern_spin(const struct pattern *p, CUstream stream, unsigned blocks,
			      uint64_t ns)
{
	LAUNCH(p, stream, blocks, ns);
}

static struct {
	void (*job)(int number);
	int count;
	int next;
	bool is_done[JOBS_MAX];
	pthread_t threads[WORKERS];
} workers; /* under lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_done = PTHREAD_COND_INITIALIZER;

static void *worker_main(void *unused)
{
	pthread_mutex_lock(&lock);
	while (workers.next < workers.count) {
		int number = workers.next++;

		pthread_mutex_unlock(&lock);
		workers.job(number);
		pthread_mutex_lock(&lock);
		workers.is_done[number] = true;
		pthread_cond_broadcast(&was_done);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

void workers_start(void (*job)(int number), int count)
{
	if (count > JOBS_MAX)
		abort();
	workers.job = job;
	workers.count = count;
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers.threads[i], NULL, worker_main, NULL)) {
			fprintf(stderr, "cannot create a thread\n");
			exit(1);
		}
}

void workers_wait(int number)
{
	pthread_mutex_lock(&lock);
	while (!workers.is_done[number])
		pthread_cond_wait(&was_done, &lock);
	pthread_mutex_unlock(&lock);
}

void workers_join(void)
{
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers.threads[i], NULL);
}
