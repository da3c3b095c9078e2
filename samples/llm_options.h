/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line that samples/llm_inference.c and its twin on the runtime API share.
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

/* Exits with status 2 on bad usage, and with 0 after --help. */
void llm_options_parse(struct llm_options *options, const char *program, int argc, char **argv);

/* The shape of the model that the options ask for. */
struct llm_shape llm_options_shape(const struct llm_options *options);

#ifdef __cplusplus
}
#endif

#endif
