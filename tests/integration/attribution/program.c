/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program SEED LEDGER [flat] [no-graph-copies]: performs random operations in several threads and
 * records them. With "flat", graphs are not nested. With "no-graph-copies", they do not copy.
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

#define DEPTH_MAX      6
#define ITERATIONS_MIN 20 /* fewer may be no steps */
#define COLLECTIVE     "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

/* Operations possible anywhere; repeated entries are more frequent. */
static const operation operations[] = {
	launch_kernel,	   launch_kernel,
	launch_kernel,	   launch_kernel,
	launch_kernel,	   launch_variant,
	launch_variant,	   launch_wrongly,
	copy_and_wait,	   copy_and_wait,
	copy_async,	   copy_async,
	copy_to_peer,	   set_and_wait,
	set_async,	   call_host,
	wait_for_stream,   wait_for_stream,
	wait_for_all,	   wait_for_event,
	order_streams,	   query,
	pause_cpu,	   pause_cpu,
	use_module,	   renew_stream,
	allocate,	   allocate,
	allocate,	   release,
	release,	   hand_over,
	take_over,	   allocate_too_much,
	release_wrongly,   capture_graph,
	capture_graph,	   build_graph,
	build_graph,	   clone_graph,
	replay_graph,	   replay_graph,
	replay_graph,	   replay_graph,
	replay_shared,	   replay_shared,
	instantiate_again, update_graph,
	update_node,	   update_node,
	drop_graph,	   range_from_below,
	pause_recording,   resume_recording,
	resume_recording,
};

/* Operations that can be captured, or that fail in a capture. */
static const operation capturable[] = {
	launch_kernel, launch_kernel, launch_kernel, launch_variant,	  launch_wrongly,
	copy_async,    copy_async,    set_async,     call_host,		  wait_for_stream,
	fork_capture,  join_capture,  pause_cpu,     launch_into_capture, range_from_below,
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static inline __attribute__((always_inline)) void operate(struct job *job)
{
	if (job->captured)
		capturable[pick(job, COUNT(capturable))](job);
	else
		operations[pick(job, COUNT(operations))](job);
}

/* Inlined into the path functions, so that only they are in the path. */
static inline __attribute__((always_inline)) void walk(struct job *job)
{
	unsigned steps = 1 + pick(job, 4);

	job->depth++;
	while (steps-- && job->budget) {
		unsigned what = pick(job, 10);

		job->budget--;
		if (what < 4 && job->depth < DEPTH_MAX)
			descend(job);
		else if (what < 6)
			range_step(job);
		else
			operate(job);
	}
	job->depth--;
}

#define PATH_FUNCTION(letter)                                                                      \
	static FRAME_FUNCTION void path_##letter(struct job *job)                                  \
	{                                                                                          \
		ENTER();                                                                           \
		walk(job);                                                                         \
		LEAVE();                                                                           \
	}
PATH_FUNCTION(a)
PATH_FUNCTION(b)
PATH_FUNCTION(c)
PATH_FUNCTION(d)
PATH_FUNCTION(e)
PATH_FUNCTION(f)

FRAME_FUNCTION void descend(struct job *job)
{
	static const operation paths[] = {path_a, path_b, path_c, path_d, path_e, path_f};

	ENTER();
	paths[pick(job, COUNT(paths))](job);
	LEAVE();
}

static void require(CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "cannot go on after error %d\n", result);
	exit(1);
}

static FRAME_FUNCTION void begin_job(struct job *job)
{
	ENTER();
	require(CU(cuCtxSetCurrent, job->gpu->context));
	for (unsigned i = 0; i < STREAMS; i++)
		require(CU(cuStreamCreate, &job->streams[i],
			   i ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
	require(CU(cuEventCreate, &job->event, CU_EVENT_DEFAULT));
	require(CU(cuEventCreate, &job->fork_event, CU_EVENT_DISABLE_TIMING));
	require(CU(cuEventCreate, &job->join_event, CU_EVENT_DISABLE_TIMING));
	buffers_make(job);
	LEAVE();
}

static FRAME_FUNCTION void *worker(void *arg)
{
	struct job *job = arg;
	char name[16];

	snprintf(name, sizeof(name), "worker %u", job->number);
	pthread_setname_np(pthread_self(), name);
	ledger_begin_thread();
	ENTER();
	begin_job(job);
	while (job->budget)
		descend(job);
	if (pick(job, 2))
		ranges_close(job);
	LEAVE();
	return NULL;
}

static FRAME_FUNCTION void make_gpu(struct gpu *gpu, int device, bool is_primary)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry k_0() { ret; }\n"
				  ".visible .entry k_1() { ret; }\n"
				  ".visible .entry k_2() { ret; }\n"
				  ".visible .entry k_3() { ret; }\n"
				  ".visible .entry k_4() { ret; }\n"
				  ".visible .entry " COLLECTIVE "() { ret; }\n";
	static const char *const names[KERNELS] = {"k_0", "k_1", "k_2", "k_3", "k_4", COLLECTIVE};

	ENTER();
	gpu->device = device;
	if (is_primary)
		require(CU(cuDevicePrimaryCtxRetain, &gpu->context, device));
	else
		require(CU(cuCtxCreate, &gpu->context, NULL, 0, device));
	require(CU(cuCtxSetCurrent, gpu->context));
	require(CU(cuModuleLoadData, &gpu->module, ptx));
	for (unsigned i = 0; i < KERNELS; i++)
		require(CU(cuModuleGetFunction, &gpu->kernels[i], gpu->module, names[i]));
	require(CU(cuMemAlloc, &gpu->peer_buffer, (THREADS_MAX + 1) * 4096));
	LEAVE();
}

/* Creates a primary context for each device, and sometimes a second one on the first. */
static FRAME_FUNCTION void make_gpus(struct shared *shared, struct job *job)
{
	int device_count = 0;

	ENTER();
	require(CU(cuDeviceGetCount, &device_count));
	for (int device = 0; device < device_count && device < CONTEXTS_MAX - 1; device++)
		make_gpu(&shared->gpus[shared->gpu_count++], device, true);
	if (!pick(job, 3))
		make_gpu(&shared->gpus[shared->gpu_count++], 0, false);
	LEAVE();
}

static FRAME_FUNCTION void make_shared_graphs(struct shared *shared, struct job *job)
{
	ENTER();
	capture_graph(job);
	buffers_make(
		job); /* others replay a graph while this thread uses the same or another one */
	build_graph(job);
	buffers_make(job);
	for (unsigned i = 0; i < job->graph_count && i < SHARED_GRAPHS; i++)
		shared->graphs[i] = job->graphs[i];
	job->graph_count = 0;
	LEAVE();
}

static FRAME_FUNCTION void finish(struct shared *shared)
{
	ENTER();
	for (unsigned i = 0; i < shared->gpu_count; i++) {
		require(CU(cuCtxSetCurrent, shared->gpus[i].context));
		require(CU(cuCtxSynchronize));
	}
	LEAVE();
}

static void make_domains(struct shared *shared, struct job *job)
{
	nvtx_start();
	for (unsigned i = 0; i < LOOP_DOMAIN; i++)
		shared->domains[i] = nvtx_domain_create(domain_names[i + 1]);
	if (pick(job, 2))
		range_push(job, 0);
}

int main(int argc, char **argv)
{
	static struct shared shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
	static struct job jobs[1 + THREADS_MAX];
	pthread_t threads[1 + THREADS_MAX];
	unsigned thread_count;
	struct job *own = &jobs[0];

	*own = (struct job){.shared = &shared, .random = strtoull(argv[1], NULL, 10) * 0x9e3779b9u};
	for (int i = 3; i < argc; i++) {
		own->is_flat |= !strcmp(argv[i], "flat");
		own->without_copies |= !strcmp(argv[i], "no-graph-copies");
	}
	for (int i = 0; i < 8; i++)
		pick(own, 1);
	ledger_begin_thread();
	ENTER();
	make_domains(&shared, own); /* ranges may begin before CUDA */
	require(CU(cuInit, 0));
	make_gpus(&shared, own);
	own->gpu = &shared.gpus[0];
	own->budget = 100 + pick(own, 200);
	begin_job(own);
	make_shared_graphs(&shared, own);
	thread_count = pick(own, THREADS_MAX);
	for (unsigned i = 1; i <= thread_count; i++) {
		jobs[i] = (struct job){.shared = &shared,
				       .gpu = &shared.gpus[pick(own, shared.gpu_count)],
				       .number = i,
				       .is_flat = own->is_flat,
				       .without_copies = own->without_copies,
				       .budget = 50 + pick(own, 400),
				       .random = own->random ^ (uint64_t)i << 32};
		if (pthread_create(&threads[i], NULL, worker, &jobs[i]))
			return 1;
	}
	for (unsigned iteration = 0; own->budget || iteration < ITERATIONS_MIN; iteration++) {
		range_push_iteration(own, iteration);
		descend(own);
		range_pop(own, LOOP_DOMAIN);
	}
	for (unsigned i = 1; i <= thread_count; i++)
		pthread_join(threads[i], NULL);
	if (pick(own, 2))
		ranges_close(own);
	finish(&shared);
	LEAVE();
	ledger_write(argv[2]);
	return 0;
}
