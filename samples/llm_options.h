/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of samples/llm_inference.c and of llm_inference_runtime.cu.
 */
#ifndef LLM_OPTIONS_H
#define LLM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "llm_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_STREAMS_MAX 8
#define LLM_THREADS_MAX 256

struct llm_options {
	uint32_t layers, dim, heads, prompt, tokens, threads, streams, seed;
	bool verify;
};

/* Exits with status 2 on incorrect usage, and with 0 after --help. */
void llm_options_parse(struct llm_options *options, const char *program, int argc, char **argv);

/* Returns the shape of the model that the options select. */
struct llm_shape llm_options_shape(const struct llm_options *options);

#ifdef __cplusplus
}
#endif

#endif
