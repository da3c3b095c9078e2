/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and stems of frames.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "diff/load/run_profile.h"

static void removes_what_changes_between_builds(void **state)
{
	static const struct {
		const char *frame, *key;
	} rows[] = {
		{"main (main.c:12)", "main"},
		{"forward (model.py:88)", "forward"},
		{"forward (left/model.py)", "forward"},
		{"f(int)", "f(int)"},
		{"f (int)", "f (int)"},
		{"step.isra.0", "step"},
		{"step.constprop.0.isra.12 (a.c:3)", "step"},
		{"step.part.3.cold", "step"},
		{"v1.2", "v1.2"},
		{"libfoo.so+0x1f30", "libfoo.so+?"},
		{"run()::{lambda(int)#2}::operator()", "run()::{lambda}::operator()"},
		{"run::{{closure}}", "run::{closure}"},
		{"run::{closure#0}", "run::{closure}"},
		{"run::{closure_env#12}::go", "run::{closure}::go"},
		{"<lambda> (x.py:3)", "{lambda}"},
		{"run()::'lambda'(int)", "run()::{lambda}(int)"},
		{"run()::$_12::operator()", "run()::{lambda}::operator()"},
		{"core::run::h0123456789abcdef", "core::run"},
		{"[NVTX step 17]", "[NVTX step #]"},
		{"[GPU_Kernel]gemm_128x64", "[GPU_Kernel]gemm_128x64"},
		{"[GPU_Kernel]triton_poi_fused_add_12", "[GPU_Kernel]triton_poi_fused_add_#"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *key = malloc(FRAME_KEY_BOUND(strlen(rows[i].frame)));

		assert_non_null(key);
		assert_int_equal(frame_key(key, rows[i].frame), strlen(rows[i].key));
		assert_string_equal(key, rows[i].key);
		free(key);
	}
}

static void removes_arguments_from_stems(void **state)
{
	static const struct {
		const char *key, *stem;
	} rows[] = {
		{"at::add<float, true>(int)", "at::add"},
		{"[GPU_Kernel]k<f(g<int>)>", "[GPU_Kernel]k"},
		{"a<b>::c<d>", "a::c"},
		{"plain", "plain"},
	};
	char stem[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		frame_stem(stem, rows[i].key);
		assert_string_equal(stem, rows[i].stem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removes_what_changes_between_builds),
		cmocka_unit_test(removes_arguments_from_stems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
