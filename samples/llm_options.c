/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of the samples, from one table; see llm_options.h. Call before any thread
 * starts.
 */
#include "llm_options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct number_option {
	const char *name;
	size_t offset;
	uint32_t initial, min, max;
	const char *help;
};

static const struct number_option number_options[] = {
	{"layers", offsetof(struct llm_options, layers), 4, 1, LLM_LAYERS_MAX,
	 "transformer layers"},
	{"dim", offsetof(struct llm_options, dim), 256, 8, 8192, "width of the model"},
	{"heads", offsetof(struct llm_options, heads), 4, 1, 256, "attention heads"},
	{"prompt", offsetof(struct llm_options, prompt), 16, 1, 4096, "tokens of the prompt"},
	{"tokens", offsetof(struct llm_options, tokens), 32, 1, 1000000, "tokens of the answer"},
	{"threads", offsetof(struct llm_options, threads), 1, 1, LLM_THREADS_MAX,
	 "concurrent conversations, each in a thread"},
	{"streams", offsetof(struct llm_options, streams), 1, 1, LLM_STREAMS_MAX,
	 "CUDA streams of each conversation"},
	{"seed", offsetof(struct llm_options, seed), 1, 0, UINT32_MAX,
	 "seed of weights and prompts"},
};

enum { OPTION_VERIFY = 256, OPTION_HELP };

static void print_help(const char *program)
{
	printf("usage: %s [OPTION]...\n"
	       "Runs a small transformer with random weights on the first GPU.\n\n",
	       program);
	for (size_t i = 0; i < COUNT_OF(number_options); i++)
		printf("  --%-8s N  %s (%u)\n", number_options[i].name, number_options[i].help,
		       number_options[i].initial);
	printf("  --verify      compare the logits with a forward pass on the CPU\n"
	       "  --help        print this and exit\n\n"
	       "Exit status: 0 success, 1 CUDA error or wrong logits, 2 incorrect usage,\n"
	       "3 --verify on a simulated GPU, which does not compute.\n");
}

__attribute__((noreturn)) static void usage_error(const char *program, const char *what,
						  const char *which)
{
	fprintf(stderr, "%s: %s%s; see --help\n", program, what, which);
	exit(2);
}

static void parse_number(struct llm_options *options, const char *program,
			 const struct number_option *option, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < option->min ||
	    value > option->max)
		usage_error(program, "out of range: --", option->name);
	memcpy((char *)options + option->offset, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
}

void llm_options_parse(struct llm_options *options, const char *program, int argc, char **argv)
{
	struct option table[COUNT_OF(number_options) + 3] = {0};
	size_t n = 0;
	int code;

	memset(options, 0, sizeof(*options));
	for (; n < COUNT_OF(number_options); n++) {
		memcpy((char *)options + number_options[n].offset, &number_options[n].initial,
		       sizeof(uint32_t));
		table[n] = (struct option){number_options[n].name, required_argument, NULL, (int)n};
	}
	table[n++] = (struct option){"verify", no_argument, NULL, OPTION_VERIFY};
	table[n++] = (struct option){"help", no_argument, NULL, OPTION_HELP};
	while ((code = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (code == '?')
			usage_error(program, "bad usage", "");
		if (code == OPTION_HELP) {
			print_help(program);
			exit(0);
		}
		if (code == OPTION_VERIFY)
			options->verify = true;
		else
			parse_number(options, program, &number_options[code], optarg);
	}
	if (optind < argc)
		usage_error(program, "unexpected argument: ", argv[optind]);
	if (options->dim % options->heads || options->dim / options->heads % 2 ||
	    options->dim / options->heads > 1024)
		usage_error(program, "--dim / --heads must be an even integer of at most 1024", "");
}

struct llm_shape llm_options_shape(const struct llm_options *options)
{
	return (struct llm_shape){
		.dim = options->dim,
		.head_count = options->heads,
		.head_dim = options->dim / options->heads,
		.hidden = options->dim * 8 / 3,
		.layer_count = options->layers,
		.positions_max = options->prompt + options->tokens,
	};
}
