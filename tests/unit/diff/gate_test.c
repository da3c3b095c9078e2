/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error rates of the default rules: many comparisons of synthetic runs under each model of noise.
 * Prints the table of docs/internals/DIFF_METHOD.md. Fails if a rate is significantly worse than
 * its goal.
 *
 * 	test_diff_gate [PAIRS [SEED [RUNS [MODEL]]]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/load/run_profile.h"
#include "diff/rules/verdict.h"
#include "gate_model.h"

#define RUNS_MAX	 64
#define START_ITERATIONS 3.0 /* what a run does before its iterations, in iterations */
#define START_NOISE	 0.1

static char keys[GATE_PATHS][64];
static const char *frames[GATE_PATHS][4];

static void make_keys(void)
{
	for (int p = 0; p < GATE_PATHS; p++) {
		static char kernels[GATE_PATHS][32];

		snprintf(kernels[p], sizeof(kernels[p]), "[GPU_Kernel]kernel_%d", p);
		snprintf(keys[p], sizeof(keys[p]), "main;step;layer;%.31s", kernels[p]);
		frames[p][0] = "main";
		frames[p][1] = "step";
		frames[p][2] = "layer";
		frames[p][3] = kernels[p];
	}
}

static struct quantity quantity(const struct gate_stat *stat)
{
	return (struct quantity){stat->mean, stat->typical, stat->error, stat->residual};
}

static int compare_entries(const void *a, const void *b)
{
	const struct profile_entry *x = a, *y = b;

	return x->level != y->level ? (x->level < y->level ? -1 : 1) : strcmp(x->key, y->key);
}

/* Iterations, and a start whose work is the same within a few percent of it. */
static double whole_of(double mean, double start)
{
	return mean * (GATE_ITERATIONS + start);
}

/* Values are of the whole run. without is a path to leave out; GATE_PATHS: none. */
static struct run_profile *make_profile(const struct gate_run *run, uint64_t start_ns, int without,
					struct gate_random *random)
{
	double start = START_ITERATIONS * (1.0 + START_NOISE * (2.0 * gate_uniform(random) - 1.0));
	static const char *total_frame = "gpu-time";
	struct run_profile *p = calloc(1, sizeof(*p));
	struct profile_entry *entries = calloc(GATE_PATHS + 1, sizeof(*entries));

	if (!p || !entries)
		abort();
	for (int i = 0; i <= GATE_PATHS; i++) {
		struct profile_entry *e = &entries[p->entry_count];
		bool is_path = i < GATE_PATHS;

		if (is_path && i == without)
			continue;
		p->entry_count++;

		e->level = is_path ? LEVEL_PATH : LEVEL_TOTAL;
		e->key = is_path ? keys[i] : total_frame;
		e->frames = is_path ? frames[i] : &total_frame;
		e->frame_count = is_path ? 4 : 1;
		e->quantities[METRIC_VALUE] = quantity(&run->value[i]);
		e->quantities[METRIC_COUNT] = quantity(&run->count[i]);
		e->quantities[METRIC_EACH] = quantity(&run->each[i]);
		e->whole_value = whole_of(run->value[i].mean, start);
		e->whole_count = whole_of(run->count[i].mean, START_ITERATIONS);
	}
	qsort(entries, p->entry_count, sizeof(*entries), compare_entries);
	p->entries = entries;
	p->iterations.kind = "nvtx";
	p->selection = "";
	p->command = "";
	p->start_realtime_ns = start_ns;
	p->iterations.used_count = p->iterations.found_count = GATE_ITERATIONS;
	run_profile_use_whole(p);
	return p;
}

struct task {
	enum gate_model model;
	uint32_t path; /* the changed path */
	double slower; /* INFINITY: the path is new */
	size_t runs;
};

struct score {
	size_t failed, by_total, unknown, found, named;
	double detectable, runs_needed;
};

/* Record the sides alternately or one after the other. */
static double moment(size_t run, int side, size_t runs, bool alternates)
{
	size_t place =
		alternates ? 2 * run + (size_t)(run % 2 ? !side : side) : (size_t)side * runs + run;

	return (double)place / (double)(2 * runs - 1);
}

static void compare(struct score *score, const struct task *task, const struct rules *rules,
		    bool alternates, struct gate_random *random)
{
	struct gate_program program;
	struct run_set sets[SIDES] = {0};
	struct comparison comparison;
	struct verdict verdict;
	struct problems none = {0};
	size_t others = 0, hits = 0;
	bool is_new = isinf(task->slower);

	gate_program_make(&program, random);
	for (int s = 0; s < SIDES; s++) {
		for (size_t r = 0; r < task->runs; r++) {
			static struct gate_run run;
			double when = moment(r, s, task->runs, alternates);

			gate_run_make(&run, &program, task->model, when, task->path,
				      s == SIDE_NEW && !is_new ? task->slower : 1.0, random);
			run_set_add(&sets[s],
				    make_profile(&run, (uint64_t)(1e12 * (1 + when)),
						 s == SIDE_BASE && is_new ? (int)task->path
									  : GATE_PATHS,
						 random));
		}
	}
	comparison_make(&comparison, sets, 0.0);
	verdict_make(&verdict, &comparison, rules, &none);
	for (size_t f = 0; f < verdict.finding_count; f++) {
		const struct comparison_row *row = verdict.findings[f].row;

		if (verdict.findings[f].outcome != OUTCOME_FAIL || row->level != LEVEL_PATH)
			continue;
		if (!strcmp(row->key, keys[task->path]))
			hits++;
		else
			others++;
	}
	score->failed += verdict.outcome == OUTCOME_FAIL;
	score->by_total += verdict.results[0].outcome == OUTCOME_FAIL;
	score->unknown += verdict.outcome == OUTCOME_UNKNOWN;
	score->found += hits > 0;
	score->named += hits > 0 && !others;
	score->detectable += comparison_find(&comparison, LEVEL_PATH, keys[task->path])
				     ->effects[METRIC_VALUE]
				     .net.detectable;
	score->runs_needed += comparison.runs_needed;
	verdict_free(&verdict);
	comparison_free(&comparison);
	for (int s = 0; s < SIDES; s++) {
		for (size_t r = 0; r < sets[s].count; r++)
			free(sets[s].runs[r]->entries);
		run_set_free(&sets[s]);
	}
}

static struct score measure(const struct task *task, size_t pairs, const struct rules *rules,
			    uint64_t seed)
{
	struct gate_random random = {seed * 1000003 + (uint64_t)task->model * 17 +
				     (isinf(task->slower) ? 7 : (uint64_t)(task->slower * 1000)) +
				     task->path};
	struct score score = {0};

	for (size_t i = 0; i < pairs; i++)
		compare(&score, task, rules, i % 2, &random);
	return score;
}

/* Is the rate more than three standard deviations worse than its goal? */
static bool is_missed(size_t count, size_t of, double goal)
{
	return (double)count >
	       (double)of * goal + 3.0 * sqrt((double)of * goal * (1.0 - goal)) + 0.5;
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : NAN;
}

static bool report(const char *name, const char *what, size_t count, size_t of, double goal)
{
	bool missed = is_missed(count, of, goal);

	printf("%-10s  %-34s %7.2f %%  (%s %4.1f %%)%s\n", name, what, percent(count, of),
	       "at most", 100.0 * goal, missed ? "  MISSED" : "");
	return missed;
}

static bool run_model(enum gate_model model, const char *name, size_t pairs, size_t runs,
		      uint64_t seed, const struct rules *rules)
{
	const struct task same = {model, GATE_LARGE, 1.0, runs},
			  large = {model, GATE_LARGE, 1.03, runs},
			  small = {model, GATE_SMALL, 1.10, runs},
			  appears = {model, GATE_SMALL, INFINITY, runs};
	struct score aa = measure(&same, pairs, rules, seed),
		     l = measure(&large, pairs, rules, seed),
		     s = measure(&small, pairs, rules, seed),
		     n = measure(&appears, pairs, rules, seed);
	bool missed = report(name, "A/A failed", aa.failed, pairs, 0.01);

	missed |= report(name, "A/A inconclusive", aa.unknown, pairs, 0.05);
	missed |= report(name, "3 % in a path of 6 % missed", pairs - l.found, pairs, 0.05);
	missed |= report(name, "10 % in a path of 0.5 % missed", pairs - s.found, pairs, 0.10);
	missed |= report(name, "new path of 0.5 % missed", pairs - n.found, pairs, 0.01);
	missed |= report(name, "detected, wrong path named",
			 l.found - l.named + s.found - s.named + n.found - n.named,
			 l.found + s.found + n.found, 0.01);
	printf("%-10s  smallest detectable change in the path of 6 %%: %.2f %%; %zu A/A failed for "
	       "the total\n",
	       name, 100.0 * aa.detectable / (double)pairs, aa.by_total);
	return missed;
}

int main(int argc, char **argv)
{
	static const char *const names[GATE_PER_RUN] = {"gaussian", "heavy", "drifting", "bimodal"};
	size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	size_t runs = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
	const char *only = argc > 4 ? argv[4] : NULL;
	const struct task per_run = {GATE_PER_RUN, GATE_LARGE, 1.03, runs};
	struct rules rules = {0};
	struct score alone;
	bool missed = false;

	if (!pairs || runs < 2 || runs > RUNS_MAX) {
		fprintf(stderr, "usage: test_diff_gate [PAIRS [SEED [RUNS [MODEL]]]]\n");
		return 2;
	}
	make_keys();
	rules_add_default(&rules);
	printf("%zu pairs of each kind, %zu runs per side, %d paths, %d iterations, seed %llu\n",
	       pairs, runs, GATE_PATHS, GATE_ITERATIONS, (unsigned long long)seed);
	setlinebuf(stdout);
	for (int model = 0; model < GATE_PER_RUN; model++)
		if (!only || !strcmp(only, names[model]))
			missed |= run_model((enum gate_model)model, names[model], pairs, runs, seed,
					    &rules);
	alone = measure(&per_run, pairs < 100 ? pairs : 100, &rules, seed);
	printf("per run     3 %% detected in %.0f %%; runs needed per side: %.0f\n",
	       percent(alone.found, pairs < 100 ? pairs : 100),
	       alone.runs_needed / (double)(pairs < 100 ? pairs : 100));
	rules_free(&rules);
	return missed;
}
