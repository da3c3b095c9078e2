/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of --only-counts on synthetic counts, of which some vary as in real programs: a library
 * that chooses one of two kernels, an allocator, polling, a rare event.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diff/rules/verdict.h"
#include "gate_model.h"

#define RUNS  5
#define PAIRS 1000

enum { CONSTANT = 20, CHOSEN = 5, ROWS_MAX = 64 };

struct made {
	struct profile_entry entries[ROWS_MAX];
	char keys[ROWS_MAX][32];
	const char *frames[ROWS_MAX];
	size_t count;
};

static void add_row(struct made *made, enum level level, const char *name, int number, double count)
{
	struct profile_entry *entry = &made->entries[made->count];

	if (level == LEVEL_TOTAL)
		snprintf(made->keys[made->count], sizeof(made->keys[0]), "%s", name);
	else
		snprintf(made->keys[made->count], sizeof(made->keys[0]), "%s_%02d", name, number);
	made->frames[made->count] = made->keys[made->count];
	*entry = (struct profile_entry){.level = level,
					.key = made->keys[made->count],
					.frames = &made->frames[made->count],
					.frame_count = 1,
					.whole_count = count};
	for (int m = 0; m < METRICS; m++)
		entry->quantities[m] = (struct quantity){.mean = m == METRIC_EACH ? 1 : count,
							 .typical = m == METRIC_EACH ? 1 : count};
	made->count += count > 0;
}

static double between(struct gate_random *random, int least, int most)
{
	return least + (int)(gate_uniform(random) * (most - least + 1));
}

/* more: additional launches of the first kernel, and waits. */
static struct run_profile *make_run(struct gate_random *random, int more)
{
	struct run_profile *profile = calloc(1, sizeof(*profile));
	struct made *made = calloc(1, sizeof(*made));

	assert_true(profile && made);
	add_row(made, LEVEL_TOTAL, "launches", 0, 10 * CONSTANT + 7 * CHOSEN + more);
	add_row(made, LEVEL_TOTAL, "waits", 0, 12 + (gate_uniform(random) < 0.02) + more);
	for (int k = 0; k < CONSTANT; k++)
		add_row(made, LEVEL_KERNEL, "kernel", k, 10 + (k ? 0 : more));
	for (int k = 0; k < CHOSEN; k++)
		add_row(made, LEVEL_KERNEL, gate_uniform(random) < 0.5 ? "slow" : "fast", k, 7);
	add_row(made, LEVEL_CALL, "cudaMalloc", 0, between(random, 20, 40));
	add_row(made, LEVEL_CALL, "cudaEventQuery", 0, between(random, 100, 900));
	profile->entries = made->entries;
	profile->entry_count = made->count;
	profile->iterations.kind = "none";
	profile->selection = profile->command = "";
	profile->iterations.is_whole = true;
	return profile;
}

static int compare_entries(const void *a, const void *b)
{
	const struct profile_entry *x = a, *y = b;

	return x->level != y->level ? (x->level < y->level ? -1 : 1) : strcmp(x->key, y->key);
}

static enum outcome judge(struct gate_random *random, size_t base_runs, int more)
{
	struct run_set sets[SIDES] = {0};
	struct comparison comparison;
	struct rules rules = {0};
	struct problems none = {0};
	struct verdict verdict;
	enum outcome outcome;

	rules_add_counting(&rules);
	for (int s = 0; s < SIDES; s++)
		for (size_t r = 0; r < (s ? RUNS : base_runs); r++) {
			struct run_profile *run = make_run(random, s ? more : 0);

			qsort(run->entries, run->entry_count, sizeof(*run->entries),
			      compare_entries);
			run_set_add(&sets[s], run);
		}
	comparison_make(&comparison, sets, 0.0);
	verdict_make(&verdict, &comparison, &rules, &none);
	outcome = verdict.outcome;
	verdict_free(&verdict);
	comparison_free(&comparison);
	rules_free(&rules);
	for (int s = 0; s < SIDES; s++) {
		for (size_t r = 0; r < sets[s].count; r++) {
			free(sets[s].runs[r]->entries);
			free(sets[s].runs[r]);
		}
		free(sets[s].runs);
	}
	return outcome;
}

static void has_no_false_alarm_in_1000_pairs(void **state)
{
	struct gate_random random = {1};
	size_t outcomes[OUTCOME_UNKNOWN + 1] = {0};

	(void)state;
	for (int i = 0; i < PAIRS; i++)
		outcomes[judge(&random, RUNS, 0)]++;
	assert_int_equal(outcomes[OUTCOME_FAIL], 0);
	assert_int_equal(outcomes[OUTCOME_PASS], PAIRS);
}

static void finds_one_more_launch_and_wait(void **state)
{
	struct gate_random random = {2};

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(judge(&random, RUNS, 1), OUTCOME_FAIL);
}

static void needs_five_runs_of_base(void **state)
{
	struct gate_random random = {3};

	(void)state;
	assert_int_equal(judge(&random, 4, 0), OUTCOME_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_no_false_alarm_in_1000_pairs),
		cmocka_unit_test(finds_one_more_launch_and_wait),
		cmocka_unit_test(needs_five_runs_of_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
