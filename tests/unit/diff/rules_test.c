/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing and matching of rules, with the positions of syntax errors.
 */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "diff/rules/rule.h"

static void parses_rules(void **state)
{
	static const struct {
		const char *text;
		enum rule_kind kind;
		enum level level;
		enum metric metric;
		double limit;
		bool is_relative, is_each;
	} rows[] = {
		{"gpu-time > 3%", RULE_LIMIT, LEVEL_TOTAL, METRIC_VALUE, 0.03, true, false},
		{"path(forward/attention) > 5%", RULE_LIMIT, LEVEL_PATH, METRIC_VALUE, 0.05, true,
		 false},
		{"launches > 0", RULE_LIMIT, LEVEL_TOTAL, METRIC_COUNT, 0, false, false},
		{"peak-memory > 100MB", RULE_LIMIT, LEVEL_TOTAL, METRIC_VALUE, 1e8, false, false},
		{"range(step).gpu-time < 12ms", RULE_BUDGET, LEVEL_RANGE, METRIC_VALUE, 12e6, false,
		 false},
		{"range(step).wall<1.5s", RULE_BUDGET, LEVEL_SPAN, METRIC_VALUE, 1.5e9, false,
		 false},
		{"path(*)>1%", RULE_LIMIT, LEVEL_PATH, METRIC_VALUE, 0.01, true, true},
		{"each kernel(gemm*).each > 2% # why", RULE_LIMIT, LEVEL_KERNEL, METRIC_EACH, 0.02,
		 true, true},
		{"copy(HtoD).bytes > 1KiB", RULE_LIMIT, LEVEL_BYTES, METRIC_VALUE, 1024, false,
		 false},
		{"ignore path(f(int)/g)", RULE_IGNORE, LEVEL_PATH, METRIC_VALUE, 0, false, false},
		{"allow launches +10 until 2027-01-31", RULE_ALLOW, LEVEL_TOTAL, METRIC_COUNT, 10,
		 false, false},
		{"allow path(x) +10% until 2027-01-31 # the new layer", RULE_ALLOW, LEVEL_PATH,
		 METRIC_VALUE, 0.1, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct problems problems = {0};
		struct rules rules = {0};
		const struct rule *rule;

		if (rules_add(&rules, rows[i].text, "test", &problems))
			fail_msg("%s", problems.lines[0]);
		assert_int_equal(rules.count, 1);
		rule = &rules.list[0];
		assert_int_equal(rule->kind, rows[i].kind);
		assert_int_equal(rule->level, rows[i].level);
		assert_int_equal(rule->metric, rows[i].metric);
		assert_true(fabs(rule->limit - rows[i].limit) <= 1e-9 * rows[i].limit);
		assert_int_equal(rule->is_relative, rows[i].is_relative);
		assert_int_equal(rule->is_each, rows[i].is_each);
		rules_free(&rules);
		problems_free(&problems);
	}
}

static void parses_allowances(void **state)
{
	struct problems problems = {0};
	struct rules rules = {0};
	struct tm day;

	(void)state;
	assert_int_equal(rules_add(&rules, "allow gpu-time +2% until 2027-01-31 # a reason", "test",
				   &problems),
			 0);
	assert_string_equal(rules.list[0].reason, "a reason");
	assert_non_null(localtime_r(&rules.list[0].until, &day));
	assert_int_equal(day.tm_mday, 31);
	assert_int_equal(day.tm_hour, 23);
	assert_int_equal(rules_add(&rules, "  # nothing", "test", &problems), 0);
	assert_int_equal(rules_add(&rules, "", "test", &problems), 0);
	assert_int_equal(rules.count, 1);
	assert_int_equal(problems.count, 0);
	rules_free(&rules);
}

/* Each rule with the column of its caret. */
static void reports_position_of_errors(void **state)
{
	static const struct {
		const char *text;
		int column;
		const char *says;
	} rows[] = {
		{"gpu-tme > 3%", 0, "did you mean 'gpu-time'?"},
		{"gpu-time 3%", 9, "'>'"},
		{"gpu-time > x", 11, "a number"},
		{"gpu-time > 3 MB", 12, "ns, us, ms, s or %"},
		{"gpu-time > 3", 12, "expected a unit"},
		{"path > 3%", 4, "a pattern"},
		{"path(a > 3%", 4, "unclosed"},
		{"path() > 3%", 5, "empty"},
		{"path(a).size > 3%", 8, "time, count or each"},
		{"gpu-time < 3%", 9, "a budget"},
		{"gpu-time > 3% please", 14, "unexpected"},
		{"allow path(x) 10%", 14, "+10%"},
		{"allow path(x) +10% since 2027-01-01", 19, "until"},
		{"allow path(x) +10% until monday", 25, "a date"},
		{"gpu-time > 0x10%", 11, "a number"},
		{"allow path(x) +10% until 27-02-03", 25, "a date"},
		{"", -1, NULL},
	};

	(void)state;
	for (size_t i = 0; rows[i].says; i++) {
		struct problems problems = {0};
		struct rules rules = {0};
		const char *line, *caret;

		assert_int_not_equal(rules_add(&rules, rows[i].text, "test", &problems), 0);
		assert_int_equal(problems.count, 1);
		line = problems.lines[0];
		if (!strstr(line, rows[i].says))
			fail_msg("%s\ndoes not contain: %s", line, rows[i].says);
		caret = strrchr(line, '\n') + 1 + strlen("    ");
		if ((int)strspn(caret, " ") != rows[i].column)
			fail_msg("%s\nexpected the caret at column %d", line, rows[i].column);
		rules_free(&rules);
		problems_free(&problems);
	}
}

static void matches_patterns(void **state)
{
	(void)state;
	assert_true(rule_matches("*", "main;step;[GPU_Kernel]k", false));
	assert_true(rule_matches("forward/attention", "main;forward;x;self_attention;k", false));
	assert_false(rule_matches("attention/forward", "main;forward;attention;k", false));
	assert_true(rule_matches("for*d/k", "main;forward;k", false));
	assert_false(rule_matches("for*d/k", "main;forwards;k", false));
	assert_true(rule_matches("[GPU_Memcpy*", "main;[GPU_Memcpy HtoD]", false));
	assert_false(rule_matches("a/a", "a", false));
	assert_true(rule_matches("st?p", "step", false));
	/* The kernel marker may be written or omitted. */
	assert_true(rule_matches("gemm*", "[GPU_Kernel]gemm_64", false));
	assert_true(rule_matches("[GPU_Kernel]gemm*", "main;[GPU_Kernel]gemm_64", false));
	assert_false(rule_matches("gemm*", "[GPU_Kernel]my_gemm", false));
	/* Ranges include the ranges within them. */
	assert_true(rule_matches("step", "train;step", true));
	assert_false(rule_matches("step", "train;step;forward", true));
	assert_true(rule_matches("step", "step;x;step", true));
	assert_true(rule_matches("train/step", "train;epoch;step", true));
}

static void parses_default_rules(void **state)
{
	struct rules rules = {0};

	(void)state;
	rules_add_default(&rules);
	assert_true(rules.count > 0);
	for (size_t i = 0; i < rules.count; i++)
		assert_true(rules.list[i].is_soft);
	rules_free(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_rules),
		cmocka_unit_test(parses_allowances),
		cmocka_unit_test(reports_position_of_errors),
		cmocka_unit_test(matches_patterns),
		cmocka_unit_test(parses_default_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
