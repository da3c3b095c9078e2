/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the patterns. Each pattern is a program that wastes time in one way ("bad"), and
 * does the same work without the waste ("good"):
 *
 *	alloc_loop bad
 *	alloc_loop good
 *
 * All are plain C on the CUDA driver API. The comment "finding" marks the line that xtrace must
 * report. All except gpu_idle.c use one thread.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_SKIPPED 77 /* exit status if the machine lacks what the pattern needs */

/* Keeps a function visible in call stacks. */
#define STACK_FRAME __attribute__((noinline))

#define FULL_BLOCKS   512 /* at least the number of multiprocessors of any GPU */
#define BLOCK_THREADS 128

struct pattern {
	bool is_bad;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction spin;
	CUstream stream; /* for those that need only one */
};

/* The kernels as PTX: each thread of spin(u64 ns) runs for ns nanoseconds. */
extern const char pattern_ptx[];

/* Initialises CUDA, with a context on device 0. Ends the program after an error. */
void pattern_begin(struct pattern *p, int argc, char **argv);

/*
 * Memory on the host with input of so many bytes: pageable if the pattern is bad, else page-locked.
 * Ends the program after an error.
 */
char *pattern_input(const struct pattern *p, size_t bytes);

/* Waits for all work and destroys the context. Returns the exit status. */
int pattern_end(struct pattern *p);

/* Ends the program if a call failed. */
void pattern_check(CUresult result, const char *call);
#define CHECK(call) pattern_check((call), #call)

/* Launches a kernel that occupies `blocks` multiprocessors for ns nanoseconds. */
#define LAUNCH(p, stream, blocks, ns)                                                              \
	CHECK(cuLaunchKernel((p)->spin, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, stream,              \
			     (void *[]){&(uint64_t){ns}}, NULL))

/* The same in a function of its own. */
void pattern_spin(const struct pattern *p, CUstream stream, unsigned blocks, uint64_t ns);

/* Runs job(0) to job(count - 1) in WORKERS threads. */
#define WORKERS	 5
#define JOBS_MAX 128
void workers_start(void (*job)(int number), int count);

/* Returns when that job is done. */
void workers_wait(int number);

/* Returns when all jobs are done. */
void workers_join(void);

#endif
