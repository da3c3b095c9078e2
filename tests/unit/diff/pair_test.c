/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows of two runs are the same.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/load/run_profile.h"
#include "diff/pair/pair_match.h"

static const struct pair_def lines = {"",
				      PAIR_ROWS,
				      "lines",
				      "%s (%s:%s)",
				      {"function", "file", "line"},
				      .values = {{"gpu_time_ns", "time"}, {"count", "count"}}};
static const struct pair_def kernels = {"",   PAIR_ROWS, "kernels",
					"%s", {"name"},	 .values = {{"gpu_time_ns", "time"}}};
static const struct pair_def idle = {"", PAIR_MAP, "idle", .values = {{"ns", "idle"}}};
static const struct pair_def numbers = {
	"", PAIR_NUMBERS,
	.values = {{"a.wall_ns", "wall"}, {"a.count", "count"}, {"a.gone", "gone"}}};

/* Compares documents that contain only these tables. The caller frees the rows and the memory. */
static struct pair_table compare(const struct pair_def *def, const char *a, const char *b,
				 struct arena *memory)
{
	const cJSON *sides[] = {json_parse(a, strlen(a)), json_parse(b, strlen(b))};
	struct pair_table table;

	assert_non_null(sides[0]);
	assert_non_null(sides[1]);
	table = pair_match(def, sides, memory);
	cJSON_Delete((cJSON *)sides[0]);
	cJSON_Delete((cJSON *)sides[1]);
	return table;
}

static void check(const struct pair_def *def, const char *a, const char *b, const char *expected)
{
	struct arena *memory = arena_new();
	struct pair_table table = compare(def, a, b, memory);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	for (size_t r = 0; r < table.count; r++) {
		const struct pair_row *row = &table.rows[r];

		fprintf(out, "%s%s %.0f > %s %.0f", r ? "\n" : "",
			row->sides[0] ? row->sides[0]->name : "-", pair_value(row, 0, 0),
			row->sides[1] ? row->sides[1]->name : "-", pair_value(row, 1, 0));
	}
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	pair_free(&table);
	arena_free(memory);
}

#define LINE(file, line, time, count)                                                              \
	"{\"function\":\"f\",\"file\":\"" file "\",\"line\":" #line ",\"gpu_time_ns\":" #time      \
	",\"count\":" #count "}"
#define KERNEL(name, time) "{\"name\":\"" name "\",\"gpu_time_ns\":" #time "}"

static void sorts_rows_by_change(void **state)
{
	(void)state;
	check(&kernels, "{\"kernels\":{\"rows\":[" KERNEL("a", 5) "," KERNEL("b", 100) "]}}",
	      "{\"kernels\":{\"rows\":[" KERNEL("b", 90) "," KERNEL("c", 50) "]}}",
	      "- 0 > c 50\nb 100 > b 90\na 5 > - 0");
}

static void follows_lines_that_moved(void **state)
{
	(void)state;
	/* One line was inserted above all. */
	check(&lines, "{\"lines\":[" LINE("a/x.py", 10, 100, 4) "," LINE("a/x.py", 11, 50, 2) "]}",
	      "{\"lines\":[" LINE("b/x.py", 11, 130, 4) "," LINE("b/x.py", 12, 50, 2) "]}",
	      "f (x.py:10) 100 > f (x.py:11) 130\nf (x.py:11) 50 > f (x.py:12) 50");
	/* A new line is between two others. */
	check(&lines, "{\"lines\":[" LINE("x.py", 10, 100, 4) "," LINE("x.py", 11, 90, 2) "]}",
	      "{\"lines\":[" LINE("x.py", 10, 100, 4) "," LINE("x.py", 11, 7,
							       1) "," LINE("x.py", 12, 88, 2) "]}",
	      "- 0 > f (x.py:11) 7\nf (x.py:11) 90 > f (x.py:12) 88\nf (x.py:10) 100 > f (x.py:10) "
	      "100");
}

static void names_lines_of_unknown_places(void **state)
{
	(void)state;
	check(&lines, "{\"lines\":[{\"function\":\"f\",\"gpu_time_ns\":3}]}", "{}", "f 3 > - 0");
}

static void keeps_equal_names_together(void **state)
{
	(void)state;
	/* The kernels differ in numbers only. One of them has another shape in B. */
	check(&kernels,
	      "{\"kernels\":[" KERNEL("gemm_64x64", 10) "," KERNEL("gemm_128x64", 70) "]}",
	      "{\"kernels\":[" KERNEL("gemm_64x64", 70) "," KERNEL("gemm_128x32", 10) "]}",
	      "gemm_128x64 70 > gemm_128x32 10\ngemm_64x64 10 > gemm_64x64 70");
}

/* The declared table of this part of the summary, for runs with steps. */
static const struct pair_def *steps_def(const char *at)
{
	const struct pair_def *def = pair_defs;

	while (def->title && (!def->at || strcmp(def->at, at) || def->steps <= 0))
		def++;
	assert_non_null(def->title);
	return def;
}

static void compares_findings_and_modules_of_steps_by_step(void **state)
{
	(void)state;
	/* The second run has four times as many steps. */
	check(steps_def("findings"),
	      "{\"findings\":[{\"id\":\"sync:f\",\"cost_ns\":100,\"step_ns\":1},"
	      "{\"id\":\"compile:f, outside the steps\",\"cost_ns\":70}]}",
	      "{\"findings\":[{\"id\":\"sync:f\",\"cost_ns\":400,\"step_ns\":1},"
	      "{\"id\":\"compile:f, outside the steps\",\"cost_ns\":90}]}",
	      "sync:f 1 > sync:f 1\n"
	      "compile:f, outside the steps 70 > compile:f, outside the steps 90");
	check(steps_def("modules"),
	      "{\"modules\":[{\"model\":\"M\",\"own_gpu_time_ns\":100,\"own_step_ns\":1}]}",
	      "{\"modules\":[{\"model\":\"M\",\"own_gpu_time_ns\":400,\"own_step_ns\":1}]}",
	      "M 1 > M 1");
}

static void tells_ranks_apart(void **state)
{
	(void)state;
	check(&kernels, "{\"kernels\":[" KERNEL("rank 1 (x.py, 77)", 10) "]}",
	      "{\"kernels\":[" KERNEL("rank 2 (x.py, 88)", 10) "," KERNEL("rank 1 (x.py, 99)",
									  11) "]}",
	      "- 0 > rank 2 (x.py, 88) 10\nrank 1 (x.py, 77) 10 > rank 1 (x.py, 99) 11");
}

static void adds_up_rows_of_one_name(void **state)
{
	(void)state;
	check(&kernels, "{\"kernels\":[" KERNEL("k", 10) "," KERNEL("k", 5) "]}",
	      "{\"kernels\":[" KERNEL("k", 16) "]}", "k 15 > k 16");
}

static void reads_maps_and_numbers(void **state)
{
	(void)state;
	check(&idle, "{\"idle\":{\"sync\":5}}", "{\"idle\":{\"sync\":3,\"late\":9}}",
	      "- 0 > late 9\nsync 5 > sync 3");
	check(&numbers, "{\"a\":{\"wall_ns\":7,\"count\":1}}", "{\"a\":{\"wall_ns\":9}}",
	      "wall 7 > wall 9\ncount 1 > - 0");
}

static void skips_tables_that_are_missing(void **state)
{
	(void)state;
	check(&kernels, "{}", "[]", "");
	check(&kernels, "{\"kernels\":7}", "{\"kernels\":[3,null,\"x\",[]," KERNEL("k", 1) "]}",
	      "- 0 > k 1\n- 0 >  0");
}

/* An alignment of so many rows would need too much memory. */
static void matches_large_groups_in_order(void **state)
{
	enum { COUNT = 3000 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct arena *memory = arena_new();
	struct pair_table table;

	(void)state;
	fprintf(out, "{\"kernels\":[");
	for (int i = 0; i < COUNT; i++)
		fprintf(out, "%s{\"name\":\"k%d\",\"gpu_time_ns\":%d}", i ? "," : "", i, i);
	fprintf(out, "]}");
	fclose(out);
	table = compare(&kernels, text, text, memory);
	assert_int_equal(table.count, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_string_equal(table.rows[i].sides[0]->name, table.rows[i].sides[1]->name);
	pair_free(&table);
	arena_free(memory);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_rows_by_change),
		cmocka_unit_test(follows_lines_that_moved),
		cmocka_unit_test(names_lines_of_unknown_places),
		cmocka_unit_test(keeps_equal_names_together),
		cmocka_unit_test(compares_findings_and_modules_of_steps_by_step),
		cmocka_unit_test(tells_ranks_apart),
		cmocka_unit_test(adds_up_rows_of_one_name),
		cmocka_unit_test(reads_maps_and_numbers),
		cmocka_unit_test(skips_tables_that_are_missing),
		cmocka_unit_test(matches_large_groups_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
