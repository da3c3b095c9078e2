/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequential test of a bisection: its looks, and its error rate on synthetic runs.
 */
#include "unit.h"

#include <math.h>

#include "diff/stats/sequential.h"

#define ENDS_RUNS  8
#define FIRST_RUNS 3
#define RUNS_MAX   40

static uint64_t random_state = 20;

static double uniform(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2.0 * log(uniform())) * cos(2.0 * M_PI * uniform());
}

static void add_runs(struct run_group *group, double mean, size_t count)
{
	while (group->count < count)
		run_group_add(group, mean + normal());
}

static struct references make_references(double difference)
{
	struct references references = {.noise.least = difference / 50.0};

	add_runs(&references.low, 0.0, ENDS_RUNS);
	add_runs(&references.high, difference, ENDS_RUNS);
	pooled_noise_add(&references.noise, &references.low);
	pooled_noise_add(&references.noise, &references.high);
	return references;
}

/* Adds runs until the test decides. Returns its answer. */
static enum nearer decide(const struct references *references, double truth, sequential_test *test,
			  double alpha, unsigned *runs_out)
{
	unsigned looks = sequential_looks(FIRST_RUNS, RUNS_MAX);
	struct run_pair pair = {0};
	enum nearer answer;

	for (unsigned runs = FIRST_RUNS;; runs = sequential_next(runs, RUNS_MAX)) {
		add_runs(&pair.base, 0.0, runs);
		add_runs(&pair.candidate, truth, runs);
		answer = test(references, &pair, alpha / looks);
		*runs_out = runs;
		if (answer != NEARER_UNKNOWN || runs == RUNS_MAX)
			return answer;
	}
}

static void looks_until_the_limit(void **state)
{
	(void)state;
	assert_int_equal(sequential_next(3, 40), 5);
	assert_int_equal(sequential_next(5, 40), 8);
	assert_int_equal(sequential_next(27, 40), 40);
	assert_int_equal(sequential_looks(3, 40), 7); /* 3 5 8 12 18 27 40 */
	assert_int_equal(sequential_looks(3, 3), 1);
}

/* The noise is large, so that wrong answers would be frequent without the correction for looks. */
static void errs_at_most_as_often_as_stated(void **state)
{
	const double alpha = 0.05, difference = 1.5;
	const int trials = 4000;
	int wrong = 0;
	unsigned runs;

	(void)state;
	for (int t = 0; t < trials; t++) {
		struct references references = make_references(difference);
		int is_bad = t % 2;
		enum nearer answer = decide(&references, is_bad ? difference : 0.0,
					    sequential_nearer, alpha, &runs);

		wrong += answer == (is_bad ? NEARER_LOW : NEARER_HIGH);
	}
	print_message("%d of %d wrong\n", wrong, trials);
	assert_true(wrong <= alpha * trials);
}

static void decides_clear_cases_at_the_first_look(void **state)
{
	unsigned runs;

	(void)state;
	for (int t = 0; t < 100; t++) {
		struct references references = make_references(100.0);

		assert_int_equal(decide(&references, 0.0, sequential_nearer, 1e-3, &runs),
				 NEARER_LOW);
		assert_int_equal(runs, FIRST_RUNS);
		assert_int_equal(decide(&references, 100.0, sequential_nearer, 1e-3, &runs),
				 NEARER_HIGH);
		assert_int_equal(runs, FIRST_RUNS);
	}
}

/* Counts do not vary. A difference of exactly one half cannot be decided. */
static void decides_without_noise(void **state)
{
	struct references references = {.noise.least = 2.0 / 50.0};
	struct run_pair pair = {0};

	(void)state;
	for (int n = 0; n < 3; n++) {
		run_group_add(&references.low, 1.0);
		run_group_add(&references.high, 3.0);
		run_group_add(&pair.base, 1.0);
		run_group_add(&pair.candidate, 3.0);
	}
	pooled_noise_add(&references.noise, &references.low);
	pooled_noise_add(&references.noise, &references.high);
	assert_int_equal(sequential_nearer(&references, &pair, 1e-3), NEARER_HIGH);
	pair.candidate.mean = 2.0;
	assert_int_equal(sequential_nearer(&references, &pair, 1e-3), NEARER_UNKNOWN);
	pair.candidate.mean = 1.0;
	assert_int_equal(sequential_nearer(&references, &pair, 1e-3), NEARER_LOW);
}

static void needs_more_than_one_run(void **state)
{
	struct references references = {0};
	struct run_pair pair = {0};

	(void)state;
	assert_int_equal(sequential_nearer(&references, &pair, 0.05), NEARER_UNKNOWN);
	run_group_add(&references.high, 1.0);
	run_group_add(&pair.base, 0.0);
	run_group_add(&pair.candidate, 1.0);
	assert_int_equal(sequential_nearer(&references, &pair, 0.05), NEARER_UNKNOWN);
	assert_int_equal(sequential_above_zero(&references, &pair, 0.05), NEARER_UNKNOWN);
}

static void confirms_only_increases(void **state)
{
	struct references references = make_references(10.0);
	unsigned runs;

	(void)state;
	assert_int_equal(decide(&references, 10.0, sequential_above_zero, 1e-3, &runs),
			 NEARER_HIGH);
	assert_int_equal(decide(&references, -10.0, sequential_above_zero, 1e-3, &runs),
			 NEARER_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_until_the_limit),
		cmocka_unit_test(errs_at_most_as_often_as_stated),
		cmocka_unit_test(decides_clear_cases_at_the_first_look),
		cmocka_unit_test(decides_without_noise),
		cmocka_unit_test(needs_more_than_one_run),
		cmocka_unit_test(confirms_only_increases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
