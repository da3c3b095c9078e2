/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches empty kernels as fast as possible and measures the time. A launch shows the cost of a
 * tracer most clearly.
 *
 * 	launches [--threads N] [--graph NODES] [--depth N] [--batches N] [--launches N] [--rate N]
 * 	         [--paired]
 *
 * Each thread has its own stream. It launches below --depth recursive calls, or replays a graph of
 * NODES kernels with --graph. A batch is --launches launches and a wait, few enough to keep the
 * driver's queue from filling. With --rate, each thread launches that often per second and waits
 * once at the end.
 *
 * The last line is JSON. issue_ns and done_ns are nanoseconds per launch of each batch, to the last
 * return and to the end of the wait. Both are means of all threads. It also has the peak memory,
 * and the time when main() returned (end_ns), from which the delay at exit follows.
 *
 * With --paired, every second batch runs between cuProfilerStart() and cuProfilerStop(). A tracer
 * that records only there is compared with itself in one process.
 */
#include <cuda.h>

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/monotonic.h"

#define CHECK(call)  check((call), #call)
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")
#define WARM_BATCHES 3

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry empty() { ret; }\n";

static struct {
	unsigned threads, graph_nodes, depth, batches, launches, rate;
	bool is_paired;
	CUcontext context;
	CUfunction kernel;
	pthread_barrier_t together;
} bench = {.threads = 1, .depth = 20, .batches = 100, .launches = 500};

/* The moments up to which the time of a batch is measured. */
enum { ISSUED, DONE, TIMES };

struct job {
	CUstream stream;
	CUgraphExec graph;
	double (*times_ns)[TIMES]; /* for each batch */
	bool is_first;
	pthread_t thread;
};

static void check(CUresult result, const char *call)
{
	const char *text = "unknown";

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	fprintf(stderr, "launches: %s: %s\n", call, text);
	exit(1);
}

static void launch_kernel(CUstream stream)
{
	CHECK(cuLaunchKernel(bench.kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static __attribute__((noinline)) void launch_batch(struct job *job)
{
	uint64_t begin_ns = monotonic_ns();

	for (unsigned i = 0; i < bench.launches; i++) {
		/* Checks the time every 16 launches, so a delayed thread catches up. */
		while (bench.rate && i % 16 == 0 &&
		       (monotonic_ns() - begin_ns) * bench.rate < i * UINT64_C(1000000000))
			;
		if (job->graph)
			CHECK(cuGraphLaunch(job->graph, job->stream));
		else
			launch_kernel(job->stream);
	}
	KEEP_FRAME();
}

static __attribute__((noinline)) void below(struct job *job, unsigned depth)
{
	if (depth)
		below(job, depth - 1);
	else
		launch_batch(job);
	KEEP_FRAME();
}

static void make_graph(struct job *job)
{
	CUgraph graph;

	CHECK(cuStreamBeginCapture(job->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned i = 0; i < bench.graph_nodes; i++)
		launch_kernel(job->stream);
	CHECK(cuStreamEndCapture(job->stream, &graph));
	CHECK(cuGraphInstantiate(&job->graph, graph, 0));
}

/* Batches are numbered from 0, including warm-up batches. */
static void switch_recording(unsigned batch)
{
	if (batch % 2 == WARM_BATCHES % 2)
		CHECK(cuProfilerStop());
	else
		CHECK(cuProfilerStart());
}

static void *launches_run(void *argument)
{
	struct job *job = argument;

	CHECK(cuCtxSetCurrent(bench.context));
	CHECK(cuStreamCreate(&job->stream, CU_STREAM_NON_BLOCKING));
	if (bench.graph_nodes)
		make_graph(job);
	for (unsigned batch = 0; batch < WARM_BATCHES + bench.batches; batch++) {
		uint64_t begin_ns, issued_ns;
		double *times_ns;

		if (bench.is_paired && job->is_first)
			switch_recording(batch);
		pthread_barrier_wait(&bench.together);
		begin_ns = monotonic_ns();
		below(job, bench.depth);
		issued_ns = monotonic_ns();
		CHECK(cuStreamSynchronize(job->stream));
		if (batch < WARM_BATCHES)
			continue;
		times_ns = job->times_ns[batch - WARM_BATCHES];
		times_ns[ISSUED] = (double)(issued_ns - begin_ns) / bench.launches;
		times_ns[DONE] = (double)(monotonic_ns() - begin_ns) / bench.launches;
	}
	return NULL;
}

static void print_means(const char *name, const struct job *jobs, int time)
{
	printf("\"%s\": [", name);
	for (unsigned batch = 0; batch < bench.batches; batch++) {
		double sum = 0;

		for (unsigned t = 0; t < bench.threads; t++)
			sum += jobs[t].times_ns[batch][time];
		printf("%s%.1f", batch ? ", " : "", sum / bench.threads);
	}
	printf("], ");
}

/* Peak memory of this program in KiB. wait4() would include the parent's. */
static unsigned long peak_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	while (file && !kib && fgets(line, sizeof(line), file))
		sscanf(line, "VmHWM: %lu", &kib);
	if (file)
		fclose(file);
	return kib;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {{"threads", required_argument, NULL, 't'},
						{"graph", required_argument, NULL, 'g'},
						{"depth", required_argument, NULL, 'd'},
						{"batches", required_argument, NULL, 'b'},
						{"launches", required_argument, NULL, 'l'},
						{"rate", required_argument, NULL, 'r'},
						{"paired", no_argument, NULL, 'p'},
						{0}};
	static unsigned *const numbers[] = {
		['t'] = &bench.threads, ['g'] = &bench.graph_nodes, ['d'] = &bench.depth,
		['b'] = &bench.batches, ['l'] = &bench.launches,    ['r'] = &bench.rate};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == '?')
			exit(2);
		if (option == 'p')
			bench.is_paired = true;
		else
			*numbers[option] = (unsigned)strtoul(optarg, NULL, 10);
	}
	if (!bench.threads || !bench.batches || !bench.launches || optind < argc) {
		fprintf(stderr, "launches: see the head of launches.c\n");
		exit(2);
	}
}

static void open_gpu(void)
{
	CUmodule module;
	CUdevice device;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&bench.context, device));
	CHECK(cuCtxSetCurrent(bench.context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&bench.kernel, module, "empty"));
}

int main(int argc, char **argv)
{
	struct job *jobs;

	parse(argc, argv);
	open_gpu();
	jobs = calloc(bench.threads, sizeof(*jobs));
	if (!jobs || pthread_barrier_init(&bench.together, NULL, bench.threads))
		return 1;
	for (unsigned t = 0; t < bench.threads; t++) {
		jobs[t].is_first = t == 0;
		jobs[t].times_ns = calloc(bench.batches, sizeof(*jobs[t].times_ns));
		if (!jobs[t].times_ns ||
		    pthread_create(&jobs[t].thread, NULL, launches_run, &jobs[t]))
			return 1;
	}
	for (unsigned t = 0; t < bench.threads; t++)
		pthread_join(jobs[t].thread, NULL);
	printf("{\"launches\": %llu, ",
	       (unsigned long long)bench.threads * bench.launches * (WARM_BATCHES + bench.batches));
	print_means("issue_ns", jobs, ISSUED);
	print_means("done_ns", jobs, DONE);
	for (unsigned t = 0; t < bench.threads; t++)
		free(jobs[t].times_ns);
	free(jobs);
	printf("\"peak_kib\": %lu, ", peak_kib());
	printf("\"end_ns\": %llu}\n", (unsigned long long)monotonic_ns());
	return 0;
}
