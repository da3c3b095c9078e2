/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the patterns have in common. Each pattern is a program of its own that wastes time in one
 * way ("bad"), and does the same work without ("good"):
 *
 *	alloc_loop bad
 *	alloc_loop good
 *
 * All are plain C on the CUDA driver API. A comment "finding" marks the line that xtrace is to
 * name. They run in one thread, but for what gpu_idle.c says.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_SKIPPED 77 /* exit status: this machine lacks what the pattern needs */

/* Keeps a call path as it is written. */
#define STACK_FRAME __attribute__((noinline))

#define FULL_BLOCKS   512 /* as many as any GPU has multiprocessors, and more */
#define BLOCK_THREADS 128

struct pattern {
	bool is_bad;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction spin;
};

/* The kernels as PTX: spin(u64 ns) runs for that long, every thread of it. */
extern const char pattern_ptx[];

/* Initialises CUDA, with a context on device 0. Ends the program if anything is wrong. */
void pattern_begin(struct pattern *p, int argc, char **argv);

/* Waits for all work, and closes the context. Returns the exit status. */
int pattern_end(struct pattern *p);

/* Ends the program if a call failed. */
void pattern_check(CUresult result, const char *call);
#define CHECK(call) pattern_check((call), #call)

/* Launches work of that length that fills blocks multiprocessors. */
void pattern_spin(const struct pattern *p, CUstream stream, unsigned blocks, uint64_t ns);

#endif
