/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#define BLOCKS	      2000
#define BLOCK_THREADS 256
#define SLOW_FACTOR   200
#define LAYER_BYTES   (4u << 20)
#define TENSOR_BYTES  (1u << 20)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry forward_layer() { ret; }\n"
			  ".visible .entry backward_layer() { ret; }\n"
			  ".visible .entry adam_step() { ret; }\n";

static void launch(CUfunction function, unsigned int blocks, CUstream stream)
{
	check(cuLaunchKernel(function, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, NULL, NULL),
	      "launch");
}

void model_start(struct model *model)
{
	check(cuModuleLoadData(&model->module, ptx), "module");
	check(cuModuleGetFunction(&model->forward, model->module, "forward_layer"), "forward");
	check(cuModuleGetFunction(&model->backward, model->module, "backward_layer"), "backward");
	check(cuModuleGetFunction(&model->optimizer, model->module, "adam_step"), "optimizer");
	check(cuStreamCreate(&model->compute, CU_STREAM_NON_BLOCKING), "stream");
	check(cuStreamCreate(&model->communication, CU_STREAM_NON_BLOCKING), "stream");
	for (int i = 0; i < LAYERS; i++)
		check(cuEventCreate(&model->gradient[i], CU_EVENT_DISABLE_TIMING), "event");
	check(cuEventCreate(&model->reduced, CU_EVENT_DISABLE_TIMING), "event");
}

void forward(const struct model *model)
{
	for (int i = 0; i < LAYERS; i++) {
		launch(model->forward, BLOCKS, model->compute);
		if (model->pair.rank_count)
			check(collective(&model->pair, ALL_REDUCE, TENSOR_BYTES, 0, model->compute),
			      "all-reduce of a pair");
	}
}

void backward(const struct model *model, bool is_slow)
{
	for (int i = LAYERS - 1; i >= 0; i--) {
		launch(model->backward, is_slow && i == 1 ? SLOW_FACTOR * BLOCKS : BLOCKS,
		       model->compute);
		check(cuEventRecord(model->gradient[i], model->compute), "record");
		check(cuStreamWaitEvent(model->communication, model->gradient[i], 0), "wait");
		check(collective(&model->world, ALL_REDUCE, LAYER_BYTES, 0, model->communication),
		      "all-reduce");
	}
	check(cuEventRecord(model->reduced, model->communication), "record");
}

void optimize(const struct model *model)
{
	check(cuStreamWaitEvent(model->compute, model->reduced, 0), "wait");
	launch(model->optimizer, BLOCKS, model->compute);
}
