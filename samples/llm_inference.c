/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small transformer that answers with random words: a program to trace.
 *
 * Plain C on the CUDA driver API, structured like real inference code:
 *
 *   main -> converse -> chat -> prefill | decode -> forward -> attention | feed_forward
 *        -> matmul, rmsnorm, … -> launch -> cuLaunchKernel
 *
 * Each conversation has its own thread and streams; all share the weights. With several streams, a
 * conversation computes q, k and v concurrently, and also gate and up. `--verify` compares
 * the logits with a forward pass on the CPU (llm_model.c).
 */
#include <cuda.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llm_kernels.ptx.h"
#include "llm_model.h"

#define VERIFY_TOLERANCE 1e-3f
#define COUNT_OF(array)	 (sizeof(array) / sizeof((array)[0]))

enum kernel {
	EMBED,
	RMSNORM,
	MATMUL,
	ROPE,
	ATTENTION_SCORES,
	SOFTMAX,
	ATTENTION_MIX,
	SWIGLU,
	RESIDUAL_ADD,
	ARGMAX,
	KERNEL_COUNT
};

static const char *const kernel_names[KERNEL_COUNT] = {
	[EMBED] = "embed_kernel",
	[RMSNORM] = "rmsnorm_kernel",
	[MATMUL] = "matmul_kernel",
	[ROPE] = "rope_kernel",
	[ATTENTION_SCORES] = "attention_scores_kernel",
	[SOFTMAX] = "softmax_kernel",
	[ATTENTION_MIX] = "attention_mix_kernel",
	[SWIGLU] = "swiglu_kernel",
	[RESIDUAL_ADD] = "residual_add_kernel",
	[ARGMAX] = "argmax_kernel",
};

/* The GPU and the model on it. Read-only once the conversations start. */
struct gpu {
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernels[KERNEL_COUNT];
	CUdeviceptr weights;
	char name[256];
	const struct llm_model *model;
};

/* One conversation and all that it owns on the GPU. Used by one thread. */
struct conversation {
	const struct gpu *gpu;
	const struct llm_options *options;
	uint32_t index;
	CUstream streams[LLM_STREAMS_MAX];
	CUevent forked, joined[LLM_STREAMS_MAX];
	CUdeviceptr tokens, x, normed, q, mixed, branch, gate, up, scores, logits;
	CUdeviceptr keys, values; /* [layer][position][dim] */
	uint32_t *history;	  /* prompt, then the answer */
	uint32_t length;
	double answer_s;
};

struct grid {
	uint32_t x, y, z;
};

static void check(CUresult result, const char *call)
{
	const char *text = NULL;

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	fprintf(stderr, "llm_inference: %s: %s (%d)\n", call, text ? text : "unknown error",
		result);
	exit(1);
}

static uint32_t blocks(uint32_t items, uint32_t per_block)
{
	return (items + per_block - 1) / per_block;
}

static CUdeviceptr at(CUdeviceptr base, size_t floats)
{
	return base + floats * sizeof(float);
}

static CUdeviceptr weight(const struct conversation *c, size_t offset)
{
	return at(c->gpu->weights, offset);
}

static CUdeviceptr allocate(size_t floats)
{
	CUdeviceptr memory = 0;

	check(cuMemAlloc(&memory, floats * sizeof(float)), "cuMemAlloc");
	return memory;
}

/* --- one function per kernel ------------------------------------------------------------------ */

STACK_FRAME static void launch(struct conversation *c, uint32_t stream, enum kernel kernel,
			       struct grid grid, uint32_t block, void **arguments)
{
	check(cuLaunchKernel(c->gpu->kernels[kernel], grid.x, grid.y, grid.z, block, 1, 1, 0,
			     c->streams[stream], arguments, NULL),
	      kernel_names[kernel]);
}

STACK_FRAME static void embed(struct conversation *c, CUdeviceptr tokens, uint32_t rows)
{
	uint32_t dim = c->gpu->model->shape.dim;
	CUdeviceptr table = weight(c, c->gpu->model->embedding);
	void *arguments[] = {&c->x, &table, &tokens, &dim};

	launch(c, 0, EMBED, (struct grid){blocks(dim, 128), rows, 1}, 128, arguments);
}

STACK_FRAME static void rmsnorm(struct conversation *c, CUdeviceptr x, size_t gain_offset,
				uint32_t rows)
{
	uint32_t dim = c->gpu->model->shape.dim;
	CUdeviceptr gain = weight(c, gain_offset);
	void *arguments[] = {&c->normed, &x, &gain, &dim};

	launch(c, 0, RMSNORM, (struct grid){rows, 1, 1}, 128, arguments);
}

STACK_FRAME static void matmul(struct conversation *c, uint32_t stream, CUdeviceptr out,
			       CUdeviceptr x, size_t w_offset, uint32_t n_in, uint32_t n_out,
			       uint32_t rows)
{
	CUdeviceptr w = weight(c, w_offset);
	void *arguments[] = {&out, &x, &w, &n_in, &n_out};

	launch(c, stream, MATMUL, (struct grid){blocks(n_out, 128), rows, 1}, 128, arguments);
}

STACK_FRAME static void rope(struct conversation *c, uint32_t stream, CUdeviceptr x, uint32_t rows,
			     uint32_t first)
{
	uint32_t dim = c->gpu->model->shape.dim, head_dim = c->gpu->model->shape.head_dim;
	CUdeviceptr rotation = weight(c, c->gpu->model->rotation);
	void *arguments[] = {&x, &rotation, &dim, &head_dim, &first};

	launch(c, stream, ROPE, (struct grid){blocks(dim / 2, 128), rows, 1}, 128, arguments);
}

STACK_FRAME static void attention_scores(struct conversation *c, CUdeviceptr keys, uint32_t rows,
					 uint32_t first)
{
	const struct llm_shape *s = &c->gpu->model->shape;
	uint32_t head_dim = s->head_dim, key_count = first + rows, stride = s->positions_max;
	float scale = 1 / sqrtf((float)head_dim);
	void *arguments[] = {&c->scores, &c->q,	     &keys,   &head_dim,
			     &first,	 &key_count, &stride, &scale};

	launch(c, 0, ATTENTION_SCORES, (struct grid){blocks(key_count, 64), s->head_count, rows},
	       64, arguments);
}

STACK_FRAME static void softmax(struct conversation *c, uint32_t rows, uint32_t key_count)
{
	const struct llm_shape *s = &c->gpu->model->shape;
	uint32_t stride = s->positions_max;
	void *arguments[] = {&c->scores, &key_count, &stride};

	launch(c, 0, SOFTMAX, (struct grid){rows * s->head_count, 1, 1}, 128, arguments);
}

STACK_FRAME static void attention_mix(struct conversation *c, CUdeviceptr values, uint32_t rows,
				      uint32_t key_count)
{
	const struct llm_shape *s = &c->gpu->model->shape;
	uint32_t head_dim = s->head_dim, stride = s->positions_max;
	void *arguments[] = {&c->mixed, &c->scores, &values, &head_dim, &key_count, &stride};

	launch(c, 0, ATTENTION_MIX, (struct grid){s->head_count, rows, 1}, head_dim, arguments);
}

STACK_FRAME static void swiglu(struct conversation *c, uint32_t rows)
{
	uint32_t count = rows * c->gpu->model->shape.hidden;
	void *arguments[] = {&c->gate, &c->up, &count};

	launch(c, 0, SWIGLU, (struct grid){blocks(count, 128), 1, 1}, 128, arguments);
}

STACK_FRAME static void residual_add(struct conversation *c, uint32_t rows)
{
	uint32_t count = rows * c->gpu->model->shape.dim;
	void *arguments[] = {&c->x, &c->branch, &count};

	launch(c, 0, RESIDUAL_ADD, (struct grid){blocks(count, 128), 1, 1}, 128, arguments);
}

STACK_FRAME static void argmax(struct conversation *c, CUdeviceptr out)
{
	uint32_t count = LLM_VOCAB_COUNT;
	void *arguments[] = {&out, &c->logits, &count};

	launch(c, 0, ARGMAX, (struct grid){1, 1, 1}, 256, arguments);
}

/* --- the transformer -------------------------------------------------------------------------- */

/* The stream for the n-th of several independent pieces of work. */
static uint32_t lane(const struct conversation *c, uint32_t n)
{
	return n % c->options->streams;
}

/* Work that is launched on the other streams from now on waits for stream 0. */
static void fork_streams(struct conversation *c)
{
	if (c->options->streams == 1)
		return;
	check(cuEventRecord(c->forked, c->streams[0]), "cuEventRecord");
	for (uint32_t i = 1; i < c->options->streams; i++)
		check(cuStreamWaitEvent(c->streams[i], c->forked, 0), "cuStreamWaitEvent");
}

static void join_streams(struct conversation *c)
{
	for (uint32_t i = 1; i < c->options->streams; i++) {
		check(cuEventRecord(c->joined[i], c->streams[i]), "cuEventRecord");
		check(cuStreamWaitEvent(c->streams[0], c->joined[i], 0), "cuStreamWaitEvent");
	}
}

STACK_FRAME static void attention(struct conversation *c, uint32_t index, uint32_t rows,
				  uint32_t first)
{
	const struct llm_shape *s = &c->gpu->model->shape;
	const struct llm_layer *layer = &c->gpu->model->layers[index];
	size_t cache = (size_t)index * s->positions_max * s->dim;
	CUdeviceptr keys = at(c->keys, cache), values = at(c->values, cache);
	CUdeviceptr new_keys = at(keys, (size_t)first * s->dim);
	CUdeviceptr new_values = at(values, (size_t)first * s->dim);

	rmsnorm(c, c->x, layer->attention_gain, rows);
	fork_streams(c);
	matmul(c, lane(c, 0), c->q, c->normed, layer->wq, s->dim, s->dim, rows);
	matmul(c, lane(c, 1), new_keys, c->normed, layer->wk, s->dim, s->dim, rows);
	matmul(c, lane(c, 2), new_values, c->normed, layer->wv, s->dim, s->dim, rows);
	rope(c, lane(c, 0), c->q, rows, first);
	rope(c, lane(c, 1), new_keys, rows, first);
	join_streams(c);
	attention_scores(c, keys, rows, first);
	softmax(c, rows, first + rows);
	attention_mix(c, values, rows, first + rows);
	matmul(c, 0, c->branch, c->mixed, layer->wo, s->dim, s->dim, rows);
	residual_add(c, rows);
}

STACK_FRAME static void feed_forward(struct conversation *c, uint32_t index, uint32_t rows)
{
	const struct llm_shape *s = &c->gpu->model->shape;
	const struct llm_layer *layer = &c->gpu->model->layers[index];

	rmsnorm(c, c->x, layer->ffn_gain, rows);
	fork_streams(c);
	matmul(c, lane(c, 0), c->gate, c->normed, layer->w_gate, s->dim, s->hidden, rows);
	matmul(c, lane(c, 1), c->up, c->normed, layer->w_up, s->dim, s->hidden, rows);
	join_streams(c);
	swiglu(c, rows);
	matmul(c, 0, c->branch, c->gate, layer->w_down, s->hidden, s->dim, rows);
	residual_add(c, rows);
}

/* Processes the tokens at positions first to first + rows - 1 of c->tokens. */
STACK_FRAME static void forward(struct conversation *c, uint32_t rows, uint32_t first)
{
	const struct llm_model *model = c->gpu->model;
	uint32_t dim = model->shape.dim;

	embed(c, at(c->tokens, first), rows);
	for (uint32_t i = 0; i < model->shape.layer_count; i++) {
		attention(c, i, rows, first);
		feed_forward(c, i, rows);
	}
	rmsnorm(c, at(c->x, (size_t)(rows - 1) * dim), model->final_gain, 1);
	matmul(c, 0, c->logits, c->normed, model->w_logits, dim, LLM_VOCAB_COUNT, 1);
}

/* Appends the most likely token to the sequence, on the GPU and on the host. */
STACK_FRAME static void sample(struct conversation *c)
{
	CUdeviceptr next = at(c->tokens, c->length);

	argmax(c, next);
	check(cuStreamSynchronize(c->streams[0]), "cuStreamSynchronize");
	check(cuMemcpyDtoH(&c->history[c->length], next, sizeof(uint32_t)), "cuMemcpyDtoH");
	c->length++;
}

STACK_FRAME static void prefill(struct conversation *c)
{
	check(cuMemcpyHtoDAsync(c->tokens, c->history, c->length * sizeof(uint32_t), c->streams[0]),
	      "cuMemcpyHtoDAsync");
	forward(c, c->length, 0);
	sample(c);
}

STACK_FRAME static void decode(struct conversation *c)
{
	forward(c, 1, c->length - 1);
	sample(c);
}

STACK_FRAME static void chat(struct conversation *c)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	prefill(c);
	for (uint32_t i = 1; i < c->options->tokens; i++)
		decode(c);
	clock_gettime(CLOCK_MONOTONIC, &end);
	c->answer_s =
		(double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* --- set-up ----------------------------------------------------------------------------------- */

static void open_conversation(struct conversation *c)
{
	const struct llm_shape *s = &c->gpu->model->shape;
	size_t rows = c->options->prompt;
	size_t cache = (size_t)s->layer_count * s->positions_max * s->dim;
	uint64_t state = ((uint64_t)c->options->seed << 32) + c->index + 1;

	for (uint32_t i = 0; i < c->options->streams; i++) {
		check(cuStreamCreate(&c->streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
		check(cuEventCreate(&c->joined[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	}
	check(cuEventCreate(&c->forked, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	c->tokens = allocate(s->positions_max);
	c->x = allocate(rows * s->dim);
	c->normed = allocate(rows * s->dim);
	c->q = allocate(rows * s->dim);
	c->mixed = allocate(rows * s->dim);
	c->branch = allocate(rows * s->dim);
	c->gate = allocate(rows * s->hidden);
	c->up = allocate(rows * s->hidden);
	c->scores = allocate(rows * s->head_count * s->positions_max);
	c->logits = allocate(LLM_VOCAB_COUNT);
	c->keys = allocate(cache);
	c->values = allocate(cache);

	c->history = malloc(s->positions_max * sizeof(*c->history));
	if (!c->history)
		check(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	for (c->length = 0; c->length < c->options->prompt; c->length++)
		c->history[c->length] = (uint32_t)(llm_random(&state) % LLM_VOCAB_COUNT);
}

static void close_conversation(struct conversation *c)
{
	CUdeviceptr memory[] = {c->tokens, c->x,  c->normed, c->q,	c->mixed, c->branch,
				c->gate,   c->up, c->scores, c->logits, c->keys,  c->values};

	for (size_t i = 0; i < COUNT_OF(memory); i++)
		check(cuMemFree(memory[i]), "cuMemFree");
	check(cuEventDestroy(c->forked), "cuEventDestroy");
	for (uint32_t i = 0; i < c->options->streams; i++) {
		check(cuEventDestroy(c->joined[i]), "cuEventDestroy");
		check(cuStreamDestroy(c->streams[i]), "cuStreamDestroy");
	}
	free(c->history);
}

/* The main function of a conversation's thread. */
STACK_FRAME static void *converse(void *argument)
{
	struct conversation *c = argument;

	check(cuCtxSetCurrent(c->gpu->context), "cuCtxSetCurrent");
	open_conversation(c);
	chat(c);
	return NULL;
}

static void print_conversation(const struct conversation *c)
{
	uint32_t shown = c->options->tokens < 12 ? c->options->tokens : 12;

	printf("conversation %u: %u prompt + %u answer tokens, %.1f tokens/s:", c->index,
	       c->options->prompt, c->options->tokens, c->options->tokens / c->answer_s);
	for (uint32_t i = 0; i < shown; i++)
		printf(" %u", c->history[c->options->prompt + i]);
	printf("%s\n", shown < c->options->tokens ? " ..." : "");
}

static void open_gpu(struct gpu *gpu, const struct llm_model *model)
{
	int count = 0;

	check(cuInit(0), "cuInit");
	check(cuDeviceGetCount(&count), "cuDeviceGetCount");
	if (count == 0)
		check(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
	check(cuDeviceGet(&gpu->device, 0), "cuDeviceGet");
	check(cuDeviceGetName(gpu->name, sizeof(gpu->name), gpu->device), "cuDeviceGetName");
	check(cuDevicePrimaryCtxRetain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent");
	check(cuModuleLoadData(&gpu->module, llm_kernels_ptx), "cuModuleLoadData");
	for (size_t i = 0; i < KERNEL_COUNT; i++)
		check(cuModuleGetFunction(&gpu->kernels[i], gpu->module, kernel_names[i]),
		      kernel_names[i]);
	gpu->model = model;
	gpu->weights = allocate(model->weight_count);
	check(cuMemcpyHtoD(gpu->weights, model->weights, model->weight_count * sizeof(float)),
	      "cuMemcpyHtoD");
	/* It returns before the last bytes arrive, and the other streams do not wait for them. */
	check(cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

static void close_gpu(struct gpu *gpu)
{
	check(cuMemFree(gpu->weights), "cuMemFree");
	check(cuModuleUnload(gpu->module), "cuModuleUnload");
	check(cuDevicePrimaryCtxRelease(gpu->device), "cuDevicePrimaryCtxRelease");
}

static bool is_simulated(const struct gpu *gpu)
{
	return strcasestr(gpu->name, "simulated") != NULL;
}

/* Compares the logits of the last token with the reference. Returns 0 if they agree, or else 1. */
static int verify(const struct conversation *c)
{
	float expected[LLM_VOCAB_COUNT], got[LLM_VOCAB_COUNT], largest = 0;
	uint32_t wrong = 0;

	check(cuMemcpyDtoH(got, c->logits, sizeof(got)), "cuMemcpyDtoH");
	if (llm_reference_logits(c->gpu->model, c->history, c->length - 1, expected)) {
		printf("conversation %u: WRONG: invalid tokens, or out of memory\n", c->index);
		return 1;
	}
	for (size_t i = 0; i < LLM_VOCAB_COUNT; i++)
		largest = fmaxf(largest, fabsf(expected[i]));
	for (size_t i = 0; i < LLM_VOCAB_COUNT; i++) /* true for NaN too */
		wrong += !(fabsf(got[i] - expected[i]) <= VERIFY_TOLERANCE * largest);
	if (wrong)
		printf("conversation %u: WRONG: %u of %u logits differ from the reference\n",
		       c->index, wrong, LLM_VOCAB_COUNT);
	else
		printf("conversation %u: verified: %u logits match the reference\n", c->index,
		       LLM_VOCAB_COUNT);
	return wrong != 0;
}

/* --- main ------------------------------------------------------------------------------------- */

STACK_FRAME static int run(const struct llm_options *options, struct gpu *gpu)
{
	struct conversation *all = calloc(options->threads, sizeof(*all));
	pthread_t *threads = calloc(options->threads, sizeof(*threads));
	int status = 0;

	if (!all || !threads)
		check(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	for (uint32_t i = 0; i < options->threads; i++) {
		all[i] = (struct conversation){.gpu = gpu, .options = options, .index = i};
		if (i > 0 && pthread_create(&threads[i], NULL, converse, &all[i]))
			check(CUDA_ERROR_UNKNOWN, "pthread_create");
	}
	converse(&all[0]);
	for (uint32_t i = 0; i < options->threads; i++) {
		if (i > 0)
			pthread_join(threads[i], NULL);
		print_conversation(&all[i]);
		if (options->verify && !is_simulated(gpu))
			status |= verify(&all[i]);
		close_conversation(&all[i]);
	}
	if (options->verify && is_simulated(gpu)) {
		printf("cannot verify: a simulated GPU does not compute\n");
		status = 3;
	}
	free(threads);
	free(all);
	return status;
}

int main(int argc, char **argv)
{
	struct llm_options options;
	struct llm_shape shape;
	struct llm_model model;
	struct gpu gpu;
	int status;

	llm_options_parse(&options, "llm_inference", argc, argv);
	shape = llm_options_shape(&options);
	if (llm_model_init(&model, &shape, options.seed)) {
		fprintf(stderr, "llm_inference: out of memory\n");
		return 1;
	}
	open_gpu(&gpu, &model);
	printf("GPU: %s\n", gpu.name);
	status = run(&options, &gpu);
	close_gpu(&gpu);
	llm_model_free(&model);
	return status;
}
