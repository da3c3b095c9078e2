/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a made-up program under models of noise: what a profile would say of them, through the
 * statistics of src/merge. Everything is drawn of a seed.
 */
#ifndef XT_TESTS_UNIT_DIFF_GATE_MODEL_H
#define XT_TESTS_UNIT_DIFF_GATE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define GATE_PATHS	300
#define GATE_ITERATIONS 64
#define GATE_LARGE	0 /* the path that has 6 % of the GPU time … */
#define GATE_SMALL	1 /* … and the one that has 0.5 % */

enum gate_model {
	GATE_GAUSSIAN, /* iterations 2 %, clocks 0.5 % from run to run */
	GATE_HEAVY,    /* the same with Student's t of 3 degrees, and hiccups */
	GATE_DRIFTING, /* each run warms up by about 3 %, and the machine by 2 % over all of them */
	GATE_BIMODAL,  /* clocks are fast or 5 % slower, and change within some runs */
	GATE_PER_RUN,  /* paths differ by 2 % from run to run, each by itself */
	GATE_MODELS
};

struct gate_random {
	uint64_t state;
};
double gate_uniform(struct gate_random *random);

/* The paths of a program: the same in all runs of it. */
struct gate_program {
	double shares[GATE_PATHS];    /* of the GPU time */
	double slopes[GATE_PATHS];    /* how much they go with the clock */
	double run_noise[GATE_PATHS]; /* from run to run, each by itself */
	uint32_t counts[GATE_PATHS];
};
void gate_program_make(struct gate_program *program, struct gate_random *random);

struct gate_stat {
	double mean, typical, error, residual;
};

/* What a profile says of a run: rows are the paths, and then the whole. */
struct gate_run {
	struct gate_stat value[GATE_PATHS + 1];
	struct gate_stat count[GATE_PATHS + 1];
	struct gate_stat each[GATE_PATHS + 1];
};

/*
 * Draws a run. moment: when in the session it was, 0 to 1. slower: the factor by which a path takes
 * longer.
 */
void gate_run_make(struct gate_run *run, const struct gate_program *program, enum gate_model model,
		   double moment, uint32_t slower_path, double slower, struct gate_random *random);

#endif
