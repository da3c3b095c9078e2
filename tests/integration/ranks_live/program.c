/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data-parallel training loop: one rank of a job whose ranks are processes on the simulated GPU.
 * RANK and WORLD_SIZE say which rank. It broadcasts the parameters, trains, and ends with a sharded
 * evaluation.
 *
 *	--steps N		steps to train (8)
 *	--slow loader|kernel|pause	what makes one rank slow (nothing)
 *	--late-rank R		which one (0)
 *	--late-ms N		by how much, for loader and pause (4)
 *	--pairs			ranks 0 and 1, 2 and 3, ... also reduce among themselves
 *	--mixed			in the end, put work of every kind behind a collective
 *	--die-at STEP		that rank exits with status 3 in that step
 *	--other-at STEP		that rank gathers instead of reducing in that step
 *
 * Exit status: 4 if a collective can never end, 1 after other errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "integration/attribution/nvtx_client.h"
#include "model.h"

#define LOAD_US	       500
#define PARAMETERS     (16u << 20)
#define METRIC_BYTES   64
#define COMMUNICATOR   UINT64_C(0xfedcba9876543210)
#define PAUSE_INTERVAL 2

static struct {
	int steps;
	const char *slow;
	int late_rank;
	unsigned int late_us;
	bool has_pairs;
	bool has_mixed;
	int die_at;
	int other_at;
} options = {.steps = 8, .slow = "", .late_us = 4000, .die_at = -1, .other_at = -1};

void check(CUresult result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", what, result);
	exit(result == CUDA_ERROR_LAUNCH_TIMEOUT ? 4 : 1);
}

static int environment(const char *name)
{
	const char *text = getenv(name);

	if (!text) {
		fprintf(stderr, "%s is not set\n", name);
		exit(1);
	}
	return atoi(text);
}

static void read_options(int count, char **words)
{
	for (int i = 1; i < count; i++) {
		const char *value = i + 1 < count ? words[i + 1] : "";

		if (!strcmp(words[i], "--pairs")) {
			options.has_pairs = true;
			continue;
		}
		if (!strcmp(words[i], "--mixed")) {
			options.has_mixed = true;
			continue;
		}
		i++;
		if (!strcmp(words[i - 1], "--steps"))
			options.steps = atoi(value);
		else if (!strcmp(words[i - 1], "--slow"))
			options.slow = value;
		else if (!strcmp(words[i - 1], "--late-rank"))
			options.late_rank = atoi(value);
		else if (!strcmp(words[i - 1], "--late-ms"))
			options.late_us = 1000 * (unsigned int)atoi(value);
		else if (!strcmp(words[i - 1], "--die-at"))
			options.die_at = atoi(value);
		else if (!strcmp(words[i - 1], "--other-at"))
			options.other_at = atoi(value);
		else
			check(CUDA_ERROR_INVALID_VALUE, words[i - 1]);
	}
}

static void start(struct model *model)
{
	int rank = environment("RANK"), rank_count = environment("WORLD_SIZE");
	CUcontext context;
	CUmodule module;

	nvtx_start();
	nvtx_start_payloads();
	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "context");
	check(cuModuleLoadData(&module, collectives_ptx), "collectives");
	collectives_start(module);
	model_start(model);
	check(cuMemAlloc(&model->batch, BATCH_BYTES), "allocate");
	check(cuMemAlloc(&model->loss, sizeof(float)), "allocate");
	model->world = (struct communicator){COMMUNICATOR, (uint32_t)rank, (uint32_t)rank_count};
	communicator_start(&model->world);
	if (options.has_pairs) {
		model->pair = (struct communicator){COMMUNICATOR + 1 + (uint32_t)rank / 2,
						    (uint32_t)rank % 2, 2};
		communicator_start(&model->pair);
	}
}

static void train_step(const struct model *model, int step)
{
	bool is_late = (int)model->world.rank == options.late_rank;
	float loss;

	load_batch(model,
		   LOAD_US + (is_late && !strcmp(options.slow, "loader") ? options.late_us : 0));
	forward(model);
	if (is_late && !strcmp(options.slow, "pause") && step % PAUSE_INTERVAL == 0)
		collect_garbage(options.late_us);
	if (is_late && step == options.die_at)
		_exit(3);
	if (is_late && step == options.other_at)
		check(collective(&model->world, ALL_GATHER, METRIC_BYTES, 0, model->communication),
		      "another collective");
	backward(model, is_late && !strcmp(options.slow, "kernel"));
	optimize(model);
	check(cuMemcpyDtoHAsync(&loss, model->loss, sizeof(loss), model->compute), "copy");
	check(cuStreamSynchronize(model->compute), "synchronize");
}

static void evaluate(const struct model *model)
{
	const struct communicator *world = &model->world;

	check(collective(world, REDUCE_SCATTER, PARAMETERS / world->rank_count, 0,
			 model->communication),
	      "reduce-scatter");
	check(collective(world, ALL_GATHER, PARAMETERS / world->rank_count, 0,
			 model->communication),
	      "all-gather");
	check(collective(world, REDUCE, METRIC_BYTES, world->rank_count - 1, model->communication),
	      "reduce");
	check(cuStreamSynchronize(model->communication), "synchronize");
}

int main(int argc, char **argv)
{
	struct model model = {0};

	read_options(argc, argv);
	start(&model);
	check(collective(&model.world, BROADCAST, PARAMETERS, 0, model.communication), "broadcast");
	check(cuStreamSynchronize(model.communication), "synchronize");
	for (int step = 0; step < options.steps; step++)
		train_step(&model, step);
	evaluate(&model);
	if (options.has_mixed)
		mixed_run(&model, (int)model.world.rank == options.late_rank);
	check(cuCtxSynchronize(), "synchronize");
	return 0;
}
