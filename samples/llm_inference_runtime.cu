/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version of llm_inference.c on the CUDA runtime API. The model, weights and prompt are the same,
 * so it gives the same answer. Kernels are in CUDA C++ and launched by <<<>>>. One conversation
 * runs on one stream; other values of --threads and --streams are rejected.
 *
 *   main -> chat -> prefill | decode -> forward -> attention | feed_forward -> cudaLaunchKernel
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <time.h>

#include "llm_model.h"

static void check(cudaError_t result, const char *call)
{
	if (result == cudaSuccess)
		return;
	fprintf(stderr, "llm_inference_runtime: %s: %s\n", call, cudaGetErrorString(result));
	exit(1);
}

namespace kernel
{

constexpr int block = 128;

__global__ void embed(float *out, const float *table, const uint32_t *tokens, uint32_t dim)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < dim)
		out[blockIdx.y * dim + i] = table[tokens[blockIdx.y] * dim + i];
}

template <typename Combine> __device__ float reduce(float value, Combine combine)
{
	__shared__ float partial[block];

	__syncthreads();
	partial[threadIdx.x] = value;
	for (int half = block / 2; half; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			partial[threadIdx.x] =
				combine(partial[threadIdx.x], partial[threadIdx.x + half]);
	}
	__syncthreads();
	return partial[0];
}

struct Sum {
	__device__ float operator()(float a, float b) const
	{
		return a + b;
	}
};

struct Max {
	__device__ float operator()(float a, float b) const
	{
		return fmaxf(a, b);
	}
};

__global__ void rmsnorm(float *out, const float *x, const float *gain, uint32_t dim)
{
	float sum = 0;

	x += blockIdx.x * dim;
	out += blockIdx.x * dim;
	for (uint32_t i = threadIdx.x; i < dim; i += block)
		sum += x[i] * x[i];
	sum = reduce(sum, Sum());
	for (uint32_t i = threadIdx.x; i < dim; i += block)
		out[i] = x[i] / sqrtf(sum / dim + LLM_NORM_EPSILON) * gain[i];
}

__global__ void matmul(float *out, const float *x, const float *w, uint32_t n_in, uint32_t n_out)
{
	uint32_t o = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

	if (o >= n_out)
		return;
	for (uint32_t i = 0; i < n_in; i++)
		sum = fmaf(x[blockIdx.y * n_in + i], w[i * n_out + o], sum);
	out[blockIdx.y * n_out + o] = sum;
}

__global__ void rope(float *x, const float *rotation, uint32_t dim, uint32_t head_dim,
		     uint32_t first)
{
	uint32_t pair = blockIdx.x * blockDim.x + threadIdx.x;

	if (pair >= dim / 2)
		return;
	const float *turn =
		rotation + (blockIdx.y + first) * head_dim + 2 * (pair % (head_dim / 2));
	float *at = x + blockIdx.y * dim + 2 * pair;
	float a = at[0], b = at[1];

	at[0] = a * turn[0] - b * turn[1];
	at[1] = a * turn[1] + b * turn[0];
}

__global__ void attention_scores(float *scores, const float *q, const float *keys,
				 uint32_t head_dim, uint32_t first, uint32_t key_count,
				 uint32_t stride)
{
	uint32_t key = blockIdx.x * blockDim.x + threadIdx.x, head = blockIdx.y, row = blockIdx.z;
	uint32_t dim = gridDim.y * head_dim;
	float sum = 0;

	if (key >= key_count)
		return;
	for (uint32_t d = 0; d < head_dim; d++)
		sum += q[row * dim + head * head_dim + d] * keys[key * dim + head * head_dim + d];
	scores[(row * gridDim.y + head) * stride + key] =
		key > first + row ? -INFINITY : sum / sqrtf(head_dim);
}

__global__ void softmax(float *scores, uint32_t key_count, uint32_t stride)
{
	float max = -INFINITY, sum = 0;

	scores += blockIdx.x * stride;
	for (uint32_t i = threadIdx.x; i < key_count; i += block)
		max = fmaxf(max, scores[i]);
	max = reduce(max, Max());
	for (uint32_t i = threadIdx.x; i < key_count; i += block)
		sum += scores[i] = expf(scores[i] - max);
	sum = reduce(sum, Sum());
	for (uint32_t i = threadIdx.x; i < key_count; i += block)
		scores[i] /= sum;
}

__global__ void attention_mix(float *out, const float *scores, const float *values,
			      uint32_t key_count, uint32_t stride)
{
	uint32_t head = blockIdx.x, row = blockIdx.y, dim = gridDim.x * blockDim.x;
	float sum = 0;

	for (uint32_t key = 0; key < key_count; key++)
		sum = fmaf(scores[(row * gridDim.x + head) * stride + key],
			   values[key * dim + head * blockDim.x + threadIdx.x], sum);
	out[row * dim + head * blockDim.x + threadIdx.x] = sum;
}

__global__ void swiglu(float *gate, const float *up, uint32_t count)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		gate[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

__global__ void residual_add(float *x, const float *branch, uint32_t count)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		x[i] += branch[i];
}

__global__ void argmax(uint32_t *out, const float *logits, uint32_t count)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < count; i++)
		if (logits[i] > logits[best])
			best = i;
	*out = best;
}

} // namespace kernel

struct conversation {
	const struct llm_model *model;
	float *weights, *x, *normed, *q, *mixed, *branch, *gate, *up, *scores, *logits;
	float *keys, *values; /* [layer][position][dim] */
	uint32_t *tokens, *history, length;
	cudaStream_t stream;
};

static dim3 cover(uint32_t items, uint32_t rows)
{
	return dim3((items + kernel::block - 1) / kernel::block, rows);
}

STACK_FRAME static void matmul(struct conversation *c, float *out, const float *x, size_t w,
			       uint32_t n_in, uint32_t n_out, uint32_t rows)
{
	kernel::matmul<<<cover(n_out, rows), kernel::block, 0, c->stream>>>(
		out, x, c->weights + w, n_in, n_out);
}

STACK_FRAME static void attention(struct conversation *c, uint32_t index, uint32_t rows,
				  uint32_t first)
{
	const struct llm_shape *s = &c->model->shape;
	const struct llm_layer *layer = &c->model->layers[index];
	const float *rotation = c->weights + c->model->rotation;
	float *keys = c->keys + (size_t)index * s->positions_max * s->dim;
	float *values = c->values + (size_t)index * s->positions_max * s->dim;
	float *new_keys = keys + (size_t)first * s->dim;
	uint32_t key_count = first + rows;
	dim3 pairs = cover(s->dim / 2, rows), scores = cover(key_count, s->head_count);

	scores.z = rows;
	kernel::rmsnorm<<<rows, kernel::block, 0, c->stream>>>(
		c->normed, c->x, c->weights + layer->attention_gain, s->dim);
	matmul(c, c->q, c->normed, layer->wq, s->dim, s->dim, rows);
	matmul(c, new_keys, c->normed, layer->wk, s->dim, s->dim, rows);
	matmul(c, values + (size_t)first * s->dim, c->normed, layer->wv, s->dim, s->dim, rows);
	kernel::rope<<<pairs, kernel::block, 0, c->stream>>>(c->q, rotation, s->dim, s->head_dim,
							     first);
	kernel::rope<<<pairs, kernel::block, 0, c->stream>>>(new_keys, rotation, s->dim,
							     s->head_dim, first);
	kernel::attention_scores<<<scores, kernel::block, 0, c->stream>>>(
		c->scores, c->q, keys, s->head_dim, first, key_count, s->positions_max);
	kernel::softmax<<<rows * s->head_count, kernel::block, 0, c->stream>>>(
		c->scores, key_count, s->positions_max);
	kernel::attention_mix<<<dim3(s->head_count, rows), s->head_dim, 0, c->stream>>>(
		c->mixed, c->scores, values, key_count, s->positions_max);
	matmul(c, c->branch, c->mixed, layer->wo, s->dim, s->dim, rows);
	kernel::residual_add<<<cover(rows * s->dim, 1), kernel::block, 0, c->stream>>>(
		c->x, c->branch, rows * s->dim);
}

STACK_FRAME static void feed_forward(struct conversation *c, uint32_t index, uint32_t rows)
{
	const struct llm_shape *s = &c->model->shape;
	const struct llm_layer *layer = &c->model->layers[index];

	kernel::rmsnorm<<<rows, kernel::block, 0, c->stream>>>(
		c->normed, c->x, c->weights + layer->ffn_gain, s->dim);
	matmul(c, c->gate, c->normed, layer->w_gate, s->dim, s->hidden, rows);
	matmul(c, c->up, c->normed, layer->w_up, s->dim, s->hidden, rows);
	kernel::swiglu<<<cover(rows * s->hidden, 1), kernel::block, 0, c->stream>>>(
		c->gate, c->up, rows * s->hidden);
	matmul(c, c->branch, c->gate, layer->w_down, s->hidden, s->dim, rows);
	kernel::residual_add<<<cover(rows * s->dim, 1), kernel::block, 0, c->stream>>>(
		c->x, c->branch, rows * s->dim);
}

STACK_FRAME static void forward(struct conversation *c, uint32_t rows, uint32_t first)
{
	const struct llm_model *m = c->model;
	uint32_t dim = m->shape.dim;

	kernel::embed<<<cover(dim, rows), kernel::block, 0, c->stream>>>(
		c->x, c->weights + m->embedding, c->tokens + first, dim);
	for (uint32_t i = 0; i < m->shape.layer_count; i++) {
		attention(c, i, rows, first);
		feed_forward(c, i, rows);
	}
	kernel::rmsnorm<<<1, kernel::block, 0, c->stream>>>(
		c->normed, c->x + (size_t)(rows - 1) * dim, c->weights + m->final_gain, dim);
	matmul(c, c->logits, c->normed, m->w_logits, dim, LLM_VOCAB_COUNT, 1);
}

STACK_FRAME static void sample(struct conversation *c)
{
	uint32_t *next = c->tokens + c->length;

	kernel::argmax<<<1, 1, 0, c->stream>>>(next, c->logits, LLM_VOCAB_COUNT);
	check(cudaGetLastError(), "launch");
	check(cudaMemcpyAsync(c->history + c->length, next, sizeof(*next), cudaMemcpyDeviceToHost,
			      c->stream),
	      "cudaMemcpyAsync");
	check(cudaStreamSynchronize(c->stream), "cudaStreamSynchronize");
	c->length++;
}

STACK_FRAME static void prefill(struct conversation *c)
{
	check(cudaMemcpy(c->tokens, c->history, c->length * sizeof(*c->history),
			 cudaMemcpyHostToDevice),
	      "cudaMemcpy");
	forward(c, c->length, 0);
	sample(c);
}

STACK_FRAME static void decode(struct conversation *c)
{
	forward(c, 1, c->length - 1);
	sample(c);
}

STACK_FRAME static void chat(struct conversation *c, uint32_t token_count)
{
	prefill(c);
	for (uint32_t i = 1; i < token_count; i++)
		decode(c);
}

template <typename T> static T *allocate(size_t count)
{
	T *memory;

	check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
	return memory;
}

static void open_conversation(struct conversation *c, const struct llm_options *options)
{
	const struct llm_shape *s = &c->model->shape;
	size_t rows = options->prompt, cache = (size_t)s->layer_count * s->positions_max * s->dim;
	uint64_t state = ((uint64_t)options->seed << 32) + 1;

	c->weights = allocate<float>(c->model->weight_count);
	check(cudaMemcpy(c->weights, c->model->weights, c->model->weight_count * sizeof(float),
			 cudaMemcpyHostToDevice),
	      "cudaMemcpy");
	c->tokens = allocate<uint32_t>(s->positions_max);
	for (float **row : {&c->x, &c->normed, &c->q, &c->mixed, &c->branch})
		*row = allocate<float>(rows * s->dim);
	c->gate = allocate<float>(rows * s->hidden);
	c->up = allocate<float>(rows * s->hidden);
	c->scores = allocate<float>(rows * s->head_count * s->positions_max);
	c->logits = allocate<float>(LLM_VOCAB_COUNT);
	c->keys = allocate<float>(cache);
	c->values = allocate<float>(cache);
	check(cudaStreamCreate(&c->stream), "cudaStreamCreate");
	c->history = (uint32_t *)malloc(s->positions_max * sizeof(*c->history));
	if (!c->history)
		check(cudaErrorMemoryAllocation, "malloc");
	for (c->length = 0; c->length < options->prompt; c->length++)
		c->history[c->length] = (uint32_t)(llm_random(&state) % LLM_VOCAB_COUNT);
}

int main(int argc, char **argv)
{
	struct llm_options options;
	struct llm_shape shape;
	struct llm_model model;
	struct conversation c = {};
	struct timespec begin, end;
	double answer_s;

	llm_options_parse(&options, "llm_inference_runtime", argc, argv);
	if (options.threads != 1 || options.streams != 1 || options.verify) {
		fprintf(stderr, "llm_inference_runtime: supports only one thread and one stream, "
				"and no --verify; use llm_inference\n");
		return 2;
	}
	shape = llm_options_shape(&options);
	if (llm_model_init(&model, &shape, options.seed)) {
		fprintf(stderr, "llm_inference_runtime: out of memory\n");
		return 1;
	}
	c.model = &model;
	open_conversation(&c, &options);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	chat(&c, options.tokens);
	clock_gettime(CLOCK_MONOTONIC, &end);
	answer_s = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("conversation 0: %u prompt + %u answer tokens, %.1f tokens/s:", options.prompt,
	       options.tokens, options.tokens / answer_s);
	for (uint32_t i = 0; i < options.tokens && i < 12; i++)
		printf(" %u", c.history[options.prompt + i]);
	printf("%s\n", options.tokens > 12 ? " ..." : "");
	free(c.history);
	llm_model_free(&model);
	check(cudaDeviceReset(), "cudaDeviceReset");
	return 0;
}
