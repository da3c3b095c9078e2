/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching of renamed paths.
 */
#include "unit.h"

#include "diff/compare/rows.h"

#define COUNT(list) (sizeof(list) / sizeof(list[0]))

/* Sets the match of each path of base, as an index in new. */
static void find_matches(const char *const *base, size_t base_count, const char *const *new,
			 size_t new_count, size_t *matches_out)
{
	struct lone_paths lists[2] = {0};

	for (size_t b = 0; b < base_count; b++)
		lone_paths_add(&lists[0], base[b], b);
	for (size_t n = 0; n < new_count; n++)
		lone_paths_add(&lists[1], new[n], n);
	match_paths(&lists[0], &lists[1]);
	for (size_t b = 0; b < base_count; b++)
		matches_out[b] = lists[0].list[b].match;
	free_all(lists[0].list, lists[1].list);
}

static void matches_renamed_paths(void **state)
{
	static const char *const base[] = {
		"main;train;step;forward;linear;[GPU_Kernel]gemm",
		"main;train;step;backward;linear;[GPU_Kernel]gemm",
		"main;train;load;[GPU_Memcpy HtoD]",
	};
	static const char *const new[] = {
		"main;train;step;backward;grad;linear;[GPU_Kernel]gemm", /* a wrapper */
		"main;train;step;forward2;linear;[GPU_Kernel]gemm",	 /* renamed */
		"main;other;thing;entirely;[GPU_Memcpy HtoD]",
	};
	size_t matches[COUNT(base)];

	(void)state;
	find_matches(base, COUNT(base), new, COUNT(new), matches);
	assert_int_equal(matches[0], 1);
	assert_int_equal(matches[1], 0);
	assert_true(matches[2] == MATCH_NONE);
}

static void matches_replaced_kernels(void **state)
{
	static const char *const base[] = {"main;step;add;[GPU_Kernel]slow",
					   "main;a;[GPU_Kernel]x"};
	static const char *const new[] = {"main;step;add;[GPU_Kernel]fast<int>",
					  "main;a;[GPU_Kernel]y", "main;a;[GPU_Kernel]z"};
	size_t matches[COUNT(base)];

	(void)state;
	find_matches(base, COUNT(base), new, COUNT(new), matches);
	assert_int_equal(matches[0], 0);
	assert_true(matches[1] == MATCH_NONE); /* ambiguous */
}

static void accepts_empty_lists(void **state)
{
	static const char *const one[] = {"main;[GPU_Kernel]x"};
	size_t match;

	(void)state;
	find_matches(one, 1, NULL, 0, &match);
	assert_true(match == MATCH_NONE);
	find_matches(NULL, 0, one, 1, &match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_renamed_paths),
		cmocka_unit_test(matches_replaced_kernels),
		cmocka_unit_test(accepts_empty_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
