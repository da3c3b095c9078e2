/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of noise. They are separate from the test because src/merge and src/diff have type names
 * in common.
 */
#include "gate_model.h"

#include <math.h>
#include <stdlib.h>

#include "merge/profile/profile.h"

#define NOISE	  0.02
#define RUN_NOISE 0.003 /* of a path, median */
#define HICCUPS	  0.0005

static uint64_t draw(struct gate_random *random)
{
	uint64_t x = random->state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

double gate_uniform(struct gate_random *random)
{
	return ((double)(draw(random) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct gate_random *random)
{
	return sqrt(-2.0 * log(gate_uniform(random))) * cos(2.0 * M_PI * gate_uniform(random));
}

/* Student's t with 3 degrees of freedom, scaled to variance 1. */
static double heavy(struct gate_random *random)
{
	double a = normal(random), b = normal(random), c = normal(random);

	return normal(random) / sqrt(a * a + b * b + c * c);
}

void gate_program_make(struct gate_program *program, struct gate_random *random)
{
	double sum = 0.0;

	for (int p = 0; p < GATE_PATHS; p++) {
		program->shares[p] = 1.0 / (p + 8.0);
		sum += p > GATE_SMALL ? program->shares[p] : 0.0;
		program->slopes[p] = 0.3 + 0.7 * gate_uniform(random);
		program->run_noise[p] = RUN_NOISE * exp(0.4 * normal(random));
		program->counts[p] = 1 + (uint32_t)(8.0 * gate_uniform(random));
	}
	for (int p = 0; p < GATE_PATHS; p++)
		program->shares[p] *= 0.935 / sum;
	program->shares[GATE_LARGE] = 0.06;
	program->shares[GATE_SMALL] = 0.005;
}

/* State of the machine during one run. */
struct machine {
	double level;
	double warming; /* slowdown at the end of warm-up */
	double pace;	/* speed of warm-up */
	int change_at;	/* iteration at which the clock mode changes, or -1 */
	bool is_slow;
};

static struct machine start(enum gate_model model, double moment, struct gate_random *random)
{
	struct machine m = {.level = 0.005 * normal(random), .change_at = -1};

	if (model == GATE_DRIFTING) {
		m.level = 0.02 * moment + 0.002 * normal(random);
		m.warming = 0.03 * (1.0 + 0.15 * normal(random));
		m.pace = 10.0 + 20.0 * gate_uniform(random);
	}
	if (model == GATE_BIMODAL) {
		m.level = 0.002 * normal(random);
		m.is_slow = gate_uniform(random) < 0.5;
		if (gate_uniform(random) < 0.3)
			m.change_at = (int)(GATE_ITERATIONS * gate_uniform(random));
	}
	return m;
}

/* Logarithm of the slowdown of the machine in an iteration. */
static double slowness(const struct machine *m, enum gate_model model, int iteration)
{
	double level = m->level;

	if (model == GATE_DRIFTING)
		level += m->warming * (1.0 - exp(-iteration / m->pace));
	if (model == GATE_BIMODAL)
		level +=
			m->is_slow != (m->change_at >= 0 && iteration >= m->change_at) ? 0.05 : 0.0;
	return level;
}

static double deviation(enum gate_model model, struct gate_random *random)
{
	double value = NOISE * (model == GATE_HEAVY ? heavy(random) : normal(random));

	if (model == GATE_HEAVY && gate_uniform(random) < HICCUPS)
		value += 2.0;
	return value < -0.5 ? -0.5 : value;
}

static struct gate_stat copy(const struct profile_stat *stat)
{
	return (struct gate_stat){stat->mean, stat->typical, stat->error, stat->residual};
}

void gate_run_make(struct gate_run *run, const struct gate_program *program, enum gate_model model,
		   double moment, uint32_t slower_path, double slower, struct gate_random *random)
{
	struct machine machine = start(model, moment, random);
	struct subjects subjects = {0};
	double factors[PROFILE_BATCHES], share = (double)PROFILE_BATCHES / GATE_ITERATIONS;

	for (uint32_t p = 0; p <= GATE_PATHS; p++)
		if (subjects_index(&subjects, p < GATE_PATHS ? PROFILE_PATH : PROFILE_TOTAL, p) !=
		    p)
			abort();
	for (uint32_t p = 0; p < GATE_PATHS; p++) {
		double noise = model == GATE_PER_RUN ? NOISE * normal(random)
			       : model == GATE_HEAVY ? program->run_noise[p] * heavy(random)
						     : program->run_noise[p] * normal(random);

		for (int i = 0; i < GATE_ITERATIONS; i++) {
			double own = model == GATE_PER_RUN ? 0.001 * normal(random)
							   : deviation(model, random);
			double value =
				program->shares[p] * (p == slower_path ? slower : 1.0) *
				exp(noise + program->slopes[p] * slowness(&machine, model, i)) *
				(1.0 + own) * 1e7;
			int batch = i * PROFILE_BATCHES / GATE_ITERATIONS;

			subject_add(&subjects.list[p], batch, share, value, program->counts[p]);
			subject_add(&subjects.list[GATE_PATHS], batch, share, value,
				    program->counts[p]);
		}
	}
	profile_factors(&subjects, PROFILE_BATCHES, factors);
	for (uint32_t p = 0; p <= GATE_PATHS; p++) {
		struct profile_stats stats =
			profile_stats(&subjects.list[p], PROFILE_BATCHES, factors);

		run->value[p] = copy(&stats.value);
		run->count[p] = copy(&stats.count);
		run->each[p] = copy(&stats.each);
	}
	subjects_free(&subjects);
}
