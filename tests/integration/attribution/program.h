/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program: declarations that its files share. Each thread has a job: its own streams,
 * memory, graphs and random numbers, so that one seed always gives the same calls.
 *
 * A thread calls random functions path_a to path_f, which call each other and, at any depth,
 * operations. During a capture, the same paths lead to operations that can be captured.
 */
#ifndef XTRACE_TESTS_PROGRAM_H
#define XTRACE_TESTS_PROGRAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"

#define THREADS_MAX	6 /* in addition to the main thread */
#define CONTEXTS_MAX	3
#define KERNELS		6
#define STREAMS		3 /* created by a job */
#define GRAPHS_MAX	8
#define NODES_MAX	8
#define SHARED_GRAPHS	2
#define ALLOCATIONS_MAX 48
#define BUFFER_BYTES	(256u << 10)
#define DOMAINS		2 /* of random ranges */
#define LOOP_DOMAIN	(DOMAINS + 1)
#define RANGES_MAX	16

struct gpu {
	CUcontext context;
	int device;
	CUmodule module;
	CUfunction kernels[KERNELS];
	CUdeviceptr peer_buffer;
};

struct graph {
	CUgraph graph; /* NULL once destroyed */
	CUgraphExec exec;
};

enum allocation_kind { ALLOCATION_DEVICE, ALLOCATION_ASYNC, ALLOCATION_HOST };

struct allocation {
	enum allocation_kind kind;
	uintptr_t address;
};

struct started {
	uint64_t key;
	unsigned domain; /* index into domain_names */
};

struct shared {
	struct gpu gpus[CONTEXTS_MAX];
	unsigned gpu_count;
	struct graph graphs[SHARED_GRAPHS]; /* in gpus[0]; launched by all of its threads */
	pthread_mutex_t lock;
	void *pageable_buffers[1 + THREADS_MAX + SHARED_GRAPHS]; /* of all jobs; under lock */
	unsigned pageable_buffer_count;				 /* under lock */
	CUdeviceptr
		handed_over[ALLOCATIONS_MAX]; /* in gpus[0]; any thread frees them; under lock */
	unsigned handed_over_count;	      /* under lock */
	void *domains[LOOP_DOMAIN];	      /* NVTX domains */
	struct started started[RANGES_MAX];   /* ranges that any thread may end; under lock */
	unsigned started_count;		      /* under lock */
};

struct job {
	struct shared *shared;
	const struct gpu *gpu;
	unsigned number;
	uint64_t random;
	unsigned budget; /* steps left */
	unsigned depth;
	CUstream streams[STREAMS];
	CUevent event, fork_event, join_event;
	CUstream captured; /* NULL: none */
	CUstream side;	   /* takes part in the capture, if is_forked */
	bool is_forked;
	bool is_flat;	     /* do not nest graphs */
	bool without_copies; /* no graph gets a copy node */
	CUdeviceptr device_buffer;
	void *pinned_buffer;
	void *pageable_buffer;
	struct graph graphs[GRAPHS_MAX];
	unsigned graph_count;
	struct allocation allocations[ALLOCATIONS_MAX];
	unsigned allocation_count;
	unsigned open_ranges[1 + LOOP_DOMAIN]; /* pushed, by domain; [0] is the default one */
	struct started started[RANGES_MAX];
	unsigned started_count;
};

extern const char *const domain_names[1 + LOOP_DOMAIN]; /* [0] is NULL */

/* A number below limit. */
static inline unsigned pick(struct job *job, unsigned limit)
{
	job->random = job->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(job->random >> 33) % limit;
}

/* Picks a stream for work: one of the capture, or any. */
CUstream pick_stream(struct job *job);
CUfunction pick_kernel(struct job *job);

/* Calls a random path function. */
void descend(struct job *job);

typedef void (*operation)(struct job *);

/* work.c */
void launch_kernel(struct job *job);
void launch_variant(struct job *job);
void launch_wrongly(struct job *job);
void copy_and_wait(struct job *job);
void copy_async(struct job *job);
void copy_to_peer(struct job *job);
void set_and_wait(struct job *job);
void set_async(struct job *job);
void call_host(struct job *job);
void wait_for_stream(struct job *job);
void wait_for_all(struct job *job);
void wait_for_event(struct job *job);
void order_streams(struct job *job);
void query(struct job *job);
void pause_cpu(struct job *job);
void pause_recording(struct job *job);
void resume_recording(struct job *job);
void use_module(struct job *job);
void renew_stream(struct job *job);

/* allocations.c */
void allocate(struct job *job);
void release(struct job *job);
void hand_over(struct job *job);
void take_over(struct job *job);
void allocate_too_much(struct job *job);
void release_wrongly(struct job *job);
void buffers_make(struct job *job);

/* graphs.c */
void capture_graph(struct job *job);
void build_graph(struct job *job);
void clone_graph(struct job *job);
void instantiate_again(struct job *job);
void replay_graph(struct job *job);
void replay_shared(struct job *job);
void update_graph(struct job *job);
void update_node(struct job *job);
void drop_graph(struct job *job);
void fork_capture(struct job *job);
void join_capture(struct job *job);
void launch_into_capture(struct job *job);

/* ranges.c */
void range_from_below(struct job *job);
void ranges_close(struct job *job);

#endif
