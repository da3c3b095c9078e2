/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of samples/llm_inference.c and llm_inference_runtime.cu: its shape, the layout of its
 * weights, a reference forward pass on the CPU, and the command line that chooses them.
 *
 * All weights are floats in one array. A matrix of n_in by n_out stores the outputs of one input
 * side by side, w[in * n_out + out]. Neighbouring GPU threads then read neighbouring words.
 */
#ifndef LLM_MODEL_H
#define LLM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Keeps a function visible as its own frame in call stacks. Also compile with
 * -fno-optimize-sibling-calls. Otherwise a function that ends in a call loses its frame.
 */
#define STACK_FRAME __attribute__((noinline))

#define LLM_LAYERS_MAX	 64
#define LLM_VOCAB_COUNT	 512
#define LLM_NORM_EPSILON 1e-5f

struct llm_shape {
	uint32_t dim;
	uint32_t head_count;
	uint32_t head_dim; /* dim / head_count, even */
	uint32_t hidden;   /* width of the feed-forward network */
	uint32_t layer_count;
	uint32_t positions_max; /* per conversation, including prompt and answer */
};

/* Offsets into the weights, in floats. */
struct llm_layer {
	size_t attention_gain;
	size_t wq, wk, wv, wo;
	size_t ffn_gain;
	size_t w_gate, w_up, w_down;
};

struct llm_model {
	struct llm_shape shape;
	struct llm_layer layers[LLM_LAYERS_MAX];
	size_t embedding;
	size_t rotation; /* [position][head_dim / 2][2]: cosine and sine of each rotary angle */
	size_t final_gain;
	size_t w_logits;
	size_t weight_count;
	float *weights; /* owned */
};

/* Creates random weights. Equal seeds give equal models. Returns 0 or -ENOMEM. */
int llm_model_init(struct llm_model *model, const struct llm_shape *shape, uint64_t seed);
void llm_model_free(struct llm_model *model);

/* Returns a uniform random number. *state must not be 0. */
uint64_t llm_random(uint64_t *state);

/*
 * Feeds the tokens through the model on the CPU and writes the LLM_VOCAB_COUNT logits of the last
 * one. Returns 0, -ENOMEM, or -EINVAL if a token is outside the vocabulary.
 */
int llm_reference_logits(const struct llm_model *model, const uint32_t *tokens,
			 uint32_t token_count, float *logits_out);

#define LLM_STREAMS_MAX 8
#define LLM_THREADS_MAX 256

struct llm_options {
	uint32_t layers, dim, heads, prompt, tokens, threads, streams, seed;
	bool verify;
};

/*
 * Exits with status 2 on incorrect usage, and with 0 after --help. Call before any thread starts.
 */
void llm_options_parse(struct llm_options *options, const char *program, int argc, char **argv);

/* Returns the shape of the model that the options select. */
struct llm_shape llm_options_shape(const struct llm_options *options);

#ifdef __cplusplus
}
#endif

#endif
