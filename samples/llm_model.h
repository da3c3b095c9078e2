/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that samples/llm_inference.c runs: its shape, where each weight lies, and a reference
 * forward pass on the CPU that the GPU's logits are held against.
 *
 * All weights are floats in one array; a matrix of n_in by n_out is stored with the outputs of
 * one input side by side, w[in * n_out + out], so that neighbouring GPU threads read neighbours.
 */
#ifndef LLM_MODEL_H
#define LLM_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps a function visible as a frame of its own in call stacks. Compile the samples with
 * -fno-optimize-sibling-calls too, or the frame of a function that ends in a call is gone by then. */
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
	uint32_t positions_max; /* of a conversation, prompt and answer together */
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

/* Random weights from the seed: equal seeds give equal models. 0, or -ENOMEM. */
int llm_model_init(struct llm_model *model, const struct llm_shape *shape, uint64_t seed);
void llm_model_free(struct llm_model *model);

/* A generator of uniform numbers; state is any number but 0. */
uint64_t llm_random(uint64_t *state);

/*
 * The reference: feeds the tokens through the model on the CPU and writes the LLM_VOCAB_COUNT
 * logits behind the last of them. 0, -ENOMEM, or -EINVAL if a token is outside the vocabulary.
 */
int llm_reference_logits(const struct llm_model *model, const uint32_t *tokens,
			 uint32_t token_count, float *logits_out);

#ifdef __cplusplus
}
#endif

#endif
