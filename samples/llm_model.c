/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's weights, its reference forward pass on the CPU, and the command line from one table;
 * see llm_model.h. Plain loops follow the formulas closely, because the GPU kernels are checked
 * against them.
 */
#include "llm_model.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t llm_random(uint64_t *state)
{
	/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators" */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static float uniform(uint64_t *state, float limit)
{
	float unit = (float)(llm_random(state) >> 40) / (float)(1 << 24);

	return (2 * unit - 1) * limit;
}

static size_t reserve(struct llm_model *model, size_t count)
{
	size_t offset = model->weight_count;

	model->weight_count += count;
	return offset;
}

static void lay_out(struct llm_model *model)
{
	const struct llm_shape *s = &model->shape;
	size_t square = (size_t)s->dim * s->dim, wide = (size_t)s->dim * s->hidden;

	model->embedding = reserve(model, (size_t)LLM_VOCAB_COUNT * s->dim);
	for (uint32_t i = 0; i < s->layer_count; i++) {
		struct llm_layer *layer = &model->layers[i];

		layer->attention_gain = reserve(model, s->dim);
		layer->wq = reserve(model, square);
		layer->wk = reserve(model, square);
		layer->wv = reserve(model, square);
		layer->wo = reserve(model, square);
		layer->ffn_gain = reserve(model, s->dim);
		layer->w_gate = reserve(model, wide);
		layer->w_up = reserve(model, wide);
		layer->w_down = reserve(model, wide);
	}
	model->final_gain = reserve(model, s->dim);
	model->w_logits = reserve(model, (size_t)s->dim * LLM_VOCAB_COUNT);
	model->rotation = reserve(model, (size_t)s->positions_max * s->head_dim);
}

static void fill_gain(struct llm_model *model, size_t offset)
{
	for (uint32_t i = 0; i < model->shape.dim; i++)
		model->weights[offset + i] = 1;
}

static void fill_rotation(struct llm_model *model)
{
	const struct llm_shape *s = &model->shape;
	float *out = model->weights + model->rotation;

	for (uint32_t position = 0; position < s->positions_max; position++) {
		for (uint32_t pair = 0; pair < s->head_dim / 2; pair++) {
			double frequency = pow(10000.0, -2.0 * pair / s->head_dim);

			*out++ = (float)cos(position * frequency);
			*out++ = (float)sin(position * frequency);
		}
	}
}

int llm_model_init(struct llm_model *model, const struct llm_shape *shape, uint64_t seed)
{
	/* A variance of 1/dim keeps activations near 1 through the layers. */
	float limit = sqrtf(3.0f / (float)shape->dim);
	uint64_t state = seed * 2 + 1;

	memset(model, 0, sizeof(*model));
	model->shape = *shape;
	lay_out(model);
	model->weights = malloc(model->weight_count * sizeof(float));
	if (!model->weights)
		return -ENOMEM;
	for (size_t i = 0; i < model->weight_count; i++)
		model->weights[i] = uniform(&state, limit);
	for (uint32_t i = 0; i < shape->layer_count; i++) {
		fill_gain(model, model->layers[i].attention_gain);
		fill_gain(model, model->layers[i].ffn_gain);
	}
	fill_gain(model, model->final_gain);
	fill_rotation(model);
	return 0;
}

void llm_model_free(struct llm_model *model)
{
	free(model->weights);
	model->weights = NULL;
}

/* Working memory of the reference pass, all from one allocation. */
struct scratch {
	float *x, *normed, *q, *mixed, *branch, *gate, *up, *scores;
	float *keys, *values; /* [layer][position][dim] */
};

static void matmul(float *out, const float *x, const float *w, uint32_t n_in, uint32_t n_out)
{
	memset(out, 0, n_out * sizeof(*out));
	for (uint32_t i = 0; i < n_in; i++)
		for (uint32_t o = 0; o < n_out; o++)
			out[o] += x[i] * w[(size_t)i * n_out + o];
}

static void rmsnorm(float *out, const float *x, const float *gain, uint32_t n)
{
	float sum = 0, scale;

	for (uint32_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	scale = 1 / sqrtf(sum / (float)n + LLM_NORM_EPSILON);
	for (uint32_t i = 0; i < n; i++)
		out[i] = x[i] * scale * gain[i];
}

static void rope(const struct llm_model *model, float *x, uint32_t position)
{
	const struct llm_shape *s = &model->shape;
	const float *turns = model->weights + model->rotation + (size_t)position * s->head_dim;

	for (uint32_t pair = 0; pair < s->dim / 2; pair++) {
		const float *turn = turns + 2 * (pair % (s->head_dim / 2));
		float a = x[2 * pair], b = x[2 * pair + 1];

		x[2 * pair] = a * turn[0] - b * turn[1];
		x[2 * pair + 1] = a * turn[1] + b * turn[0];
	}
}

static void softmax(float *scores, uint32_t n)
{
	float max = scores[0], sum = 0;

	for (uint32_t i = 1; i < n; i++)
		max = fmaxf(max, scores[i]);
	for (uint32_t i = 0; i < n; i++) {
		scores[i] = expf(scores[i] - max);
		sum += scores[i];
	}
	for (uint32_t i = 0; i < n; i++)
		scores[i] /= sum;
}

static void attend(const struct llm_shape *s, struct scratch *t, const float *keys,
		   const float *values, uint32_t position)
{
	float scale = 1 / sqrtf((float)s->head_dim);

	memset(t->mixed, 0, s->dim * sizeof(float));
	for (uint32_t head = 0; head < s->head_count; head++) {
		uint32_t base = head * s->head_dim;

		for (uint32_t p = 0; p <= position; p++) {
			t->scores[p] = 0;
			for (uint32_t d = 0; d < s->head_dim; d++)
				t->scores[p] +=
					t->q[base + d] * keys[(size_t)p * s->dim + base + d];
			t->scores[p] *= scale;
		}
		softmax(t->scores, position + 1);
		for (uint32_t p = 0; p <= position; p++)
			for (uint32_t d = 0; d < s->head_dim; d++)
				t->mixed[base + d] +=
					t->scores[p] * values[(size_t)p * s->dim + base + d];
	}
}

static void run_layer(const struct llm_model *model, uint32_t index, struct scratch *t,
		      uint32_t position)
{
	const struct llm_shape *s = &model->shape;
	const struct llm_layer *layer = &model->layers[index];
	const float *w = model->weights;
	float *keys = t->keys + (size_t)index * s->positions_max * s->dim;
	float *values = t->values + (size_t)index * s->positions_max * s->dim;
	float *key = keys + (size_t)position * s->dim;

	rmsnorm(t->normed, t->x, w + layer->attention_gain, s->dim);
	matmul(t->q, t->normed, w + layer->wq, s->dim, s->dim);
	matmul(key, t->normed, w + layer->wk, s->dim, s->dim);
	matmul(values + (size_t)position * s->dim, t->normed, w + layer->wv, s->dim, s->dim);
	rope(model, t->q, position);
	rope(model, key, position);
	attend(s, t, keys, values, position);
	matmul(t->branch, t->mixed, w + layer->wo, s->dim, s->dim);
	for (uint32_t i = 0; i < s->dim; i++)
		t->x[i] += t->branch[i];

	rmsnorm(t->normed, t->x, w + layer->ffn_gain, s->dim);
	matmul(t->gate, t->normed, w + layer->w_gate, s->dim, s->hidden);
	matmul(t->up, t->normed, w + layer->w_up, s->dim, s->hidden);
	for (uint32_t i = 0; i < s->hidden; i++)
		t->gate[i] = t->gate[i] / (1 + expf(-t->gate[i])) * t->up[i];
	matmul(t->branch, t->gate, w + layer->w_down, s->hidden, s->dim);
	for (uint32_t i = 0; i < s->dim; i++)
		t->x[i] += t->branch[i];
}

static float *carve(float **rest, size_t count)
{
	float *piece = *rest;

	*rest += count;
	return piece;
}

int llm_reference_logits(const struct llm_model *model, const uint32_t *tokens,
			 uint32_t token_count, float *logits_out)
{
	const struct llm_shape *s = &model->shape;
	size_t cache_count = (size_t)s->layer_count * s->positions_max * s->dim;
	size_t count =
		5 * (size_t)s->dim + 2 * (size_t)s->hidden + s->positions_max + 2 * cache_count;
	float *memory = malloc(count * sizeof(float)), *rest = memory;
	struct scratch t;

	if (!memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < token_count; i++) {
		if (tokens[i] >= LLM_VOCAB_COUNT) {
			free(memory);
			return -EINVAL;
		}
	}
	t = (struct scratch){
		.x = carve(&rest, s->dim),
		.normed = carve(&rest, s->dim),
		.q = carve(&rest, s->dim),
		.mixed = carve(&rest, s->dim),
		.branch = carve(&rest, s->dim),
		.gate = carve(&rest, s->hidden),
		.up = carve(&rest, s->hidden),
		.scores = carve(&rest, s->positions_max),
		.keys = carve(&rest, cache_count),
		.values = carve(&rest, cache_count),
	};
	for (uint32_t position = 0; position < token_count; position++) {
		memcpy(t.x, model->weights + model->embedding + (size_t)tokens[position] * s->dim,
		       s->dim * sizeof(float));
		for (uint32_t i = 0; i < s->layer_count; i++)
			run_layer(model, i, &t, position);
	}
	rmsnorm(t.normed, t.x, model->weights + model->final_gain, s->dim);
	matmul(logits_out, t.normed, model->weights + model->w_logits, s->dim, LLM_VOCAB_COUNT);
	free(memory);
	return 0;
}

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
