/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic runs under models of noise. Each run has the statistics of src/merge that its profile
 * would have. All random numbers come from a seed.
 */
#ifndef XT_TESTS_UNIT_DIFF_GATE_MODEL_H
#define XT_TESTS_UNIT_DIFF_GATE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define GATE_PATHS	300
#define GATE_ITERATIONS 64
#define GATE_LARGE	0 /* path with 6 % of the GPU time */
#define GATE_SMALL	1 /* path with 0.5 % */

enum gate_model {
	GATE_GAUSSIAN, /* iterations vary by 2 %, clocks by 0.5 % between runs */
	GATE_HEAVY,    /* the same with Student's t (3 dof) and outliers */
	GATE_DRIFTING, /* each run warms up by 3 %, the machine by 2 % over all */
	GATE_BIMODAL,  /* the clock is fast or 5 % slower, and changes in some runs */
	GATE_PER_RUN,  /* each path varies by 2 % between runs, independently */
	GATE_MODELS
};

struct gate_random {
	uint64_t state;
};
double gate_uniform(struct gate_random *random);

/* The paths of a program, equal in all its runs. */
struct gate_program {
	double shares[GATE_PATHS];    /* of the GPU time */
	double slopes[GATE_PATHS];    /* sensitivity to the clock */
	double run_noise[GATE_PATHS]; /* independent variation between runs */
	uint32_t counts[GATE_PATHS];
};
void gate_program_make(struct gate_program *program, struct gate_random *random);

struct gate_stat {
	double mean, typical, error, residual;
};

/* The content of a profile: a row for each path, and one for the whole run. */
struct gate_run {
	struct gate_stat value[GATE_PATHS + 1];
	struct gate_stat count[GATE_PATHS + 1];
	struct gate_stat each[GATE_PATHS + 1];
};

/*
 * Generate a run. moment is its time in the session, from 0 to 1. slower is the factor of the
 * changed path.
 */
void gate_run_make(struct gate_run *run, const struct gate_program *program, enum gate_model model,
		   double moment, uint32_t slower_path, double slower, struct gate_random *random);

#endif
