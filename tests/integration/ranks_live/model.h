/* SPDX-License-Identifier: Apache-2.0 */
/* One step of data-parallel training. Its parts have files of their own, as in a real program. */
#ifndef XTRACE_TESTS_RANKS_LIVE_MODEL_H
#define XTRACE_TESTS_RANKS_LIVE_MODEL_H

#include <cuda.h>
#include <stdbool.h>

#include "collectives.h"

#define LAYERS	    4
#define BATCH_BYTES 16384

struct model {
	CUmodule module;
	CUfunction forward, backward, optimizer;
	CUstream compute, communication;
	CUevent gradient[LAYERS], reduced;
	CUdeviceptr batch; /* BATCH_BYTES */
	CUdeviceptr loss;
	struct communicator world;
	struct communicator pair; /* rank_count 0: there is none */
};

/* Ends the program with status 4 after CUDA_ERROR_LAUNCH_TIMEOUT, else 1, unless result is 0. */
void check(CUresult result, const char *what);

/* loader.c: reads a batch, which takes at least that time, and uploads it. */
void load_batch(const struct model *model, unsigned int microseconds);
/* pause.c: a pause of the whole program, as by a garbage collection. */
void collect_garbage(unsigned int microseconds);
/* mixed.c: puts work of every kind behind a collective. Rank 0 must not be the late one. */
void mixed_run(const struct model *model, bool is_late);

/* model.c */
void model_start(struct model *model);
void forward(const struct model *model);
void backward(const struct model *model, bool is_slow);
void optimize(const struct model *model);

#endif
