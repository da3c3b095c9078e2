/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by module: names, passes and sums, also in random trees.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define PATH_NODES 600
#define TREES	   50

/* Columns, by the place of their name in the definition. */
static uint64_t number(const struct table_def *def, const struct cell *cells, const char *name)
{
	for (size_t c = 0; c < def->column_count; c++)
		if (!strcmp(def->columns[c].name, name))
			return cells[c].number;
	fail_msg("no column %s", name);
	return 0;
}

static const char *text(const struct table_def *def, const struct cell *cells, const char *name)
{
	for (size_t c = 0; c < def->column_count; c++)
		if (!strcmp(def->columns[c].name, name))
			return cells[c].text;
	fail_msg("no column %s", name);
	return "";
}

/* Adds a path of frames that are separated by ';', with work at its end. */
static void add(struct paths *paths, const char *path, uint64_t ns)
{
	uint32_t node = PATH_ROOT;

	for (size_t length; *path; path += length + (path[length] == ';')) {
		length = strcspn(path, ";");
		node = paths_child(paths, node, names_intern(&paths->names, path, length));
	}
	paths->nodes[node].weights[WEIGHT_GPU_TIME] += ns;
	paths->nodes[node].weights[WEIGHT_COUNT]++;
}

static void begin(struct run *run, struct sums *sums)
{
	*run = (struct run){.sums = sums};
	*sums = (struct sums){0};
	paths_init(&run->paths);
}

/* The row of a module: all and own time of the forward pass, the backward pass, and recomputing. */
static void check(const struct run *run, const struct table_def *def, const char *column,
		  const char *module, const uint64_t all[3], const uint64_t own[3], uint64_t layers)
{
	struct table_rows rows = table_open(def, run);
	struct cell cells[COLUMNS_MAX];

	for (size_t r = 0; r < rows.count; r++) {
		table_row(&rows, r, cells);
		if (strcmp(text(def, cells, column), module) != 0)
			continue;
		assert_int_equal(number(def, cells, "forward_ns"), all[0]);
		assert_int_equal(number(def, cells, "backward_ns"), all[1]);
		assert_int_equal(number(def, cells, "recompute_ns"), all[2]);
		assert_int_equal(number(def, cells, "gpu_time_ns"), all[0] + all[1] + all[2]);
		assert_int_equal(number(def, cells, "own_forward_ns"), own[0]);
		assert_int_equal(number(def, cells, "own_backward_ns"), own[1]);
		assert_int_equal(number(def, cells, "own_recompute_ns"), own[2]);
		if (layers)
			assert_int_equal(number(def, cells, "layer_count"), layers);
		table_close(&rows);
		return;
	}
	fail_msg("no row for %s", module);
}

#define SUMS(...) ((const uint64_t[3]){__VA_ARGS__})
#define MODULE(name, all, own, layers)                                                             \
	check(&run, &table_modules, "module", name, SUMS all, SUMS own, layers)
#define LAYER(name, all, own)                                                                      \
	check(&run, &table_module_layers, "layer", name, SUMS all, SUMS own, 0)

#define MODEL "step;[module] Model;forward"

static void layers_are_folded_and_passes_told_apart(void **state)
{
	struct sums sums;
	struct run run;

	(void)state;
	begin(&run, &sums);
	add(&run.paths, MODEL ";[module] layers.0;[module] layers.0.up;gemm", 1);
	add(&run.paths, MODEL ";[module] layers.12;[module] layers.12.up;gemm", 10);
	add(&run.paths, MODEL ";[module] layers.12;add", 100);
	add(&run.paths, MODEL ";[module] layers.12;[backward] AddBackward0;add", 1000);
	add(&run.paths, MODEL ";[module] l4;[module] l4.1;[backward~] Mm;gemm", 10000);
	add(&run.paths, MODEL ";[module] l4;[module] l4.2;[module] l4.2.0;gemm", 1 << 18);
	add(&run.paths, "step;[backward?] AccumulateGrad;add", 1 << 20); /* in no module */
	MODULE("Model", (111 + (1 << 18), 11000, 0), (0, 0, 0), 1);
	MODULE("layers.*", (111, 1000, 0), (100, 1000, 0), 2);
	MODULE("layers.*.up", (11, 0, 0), (11, 0, 0), 2);
	MODULE("l4", (1 << 18, 10000, 0), (0, 0, 0), 1);
	MODULE("l4.1", (0, 10000, 0), (0, 10000, 0), 1); /* nothing inside, so it is no layer */
	MODULE("l4.*", (1 << 18, 0, 0), (0, 0, 0), 1);
	MODULE("l4.*.0", (1 << 18, 0, 0), (1 << 18, 0, 0), 1);
	LAYER("layers.0", (1, 0, 0), (0, 0, 0));
	LAYER("layers.12", (110, 1000, 0), (100, 1000, 0));
	LAYER("layers.12.up", (10, 0, 0), (10, 0, 0));
	assert_int_equal(table_count(&run, &table_modules), 7);
	assert_int_equal(table_count(&run, &table_module_layers), 9);
	paths_free(&run.paths);
}

/* The path of recomputed work begins at the class of an outermost module. */
static void recomputed_modules_are_below_the_checkpoint(void **state)
{
	struct sums sums;
	struct run run;

	(void)state;
	begin(&run, &sums);
	add(&run.paths,
	    MODEL ";[module] layers.3;checkpoint;[recompute];[module] Block;"
		  "[module] mlp;[module] mlp.0;gemm",
	    1);
	add(&run.paths, MODEL ";[module] layers.3;checkpoint;[recompute];[module] Block;add", 10);
	add(&run.paths,
	    MODEL ";[module] layers.3;checkpoint;[recompute];[module] Block;"
		  "[module] mlp;[backward] Mm;gemm",
	    100);
	add(&run.paths, MODEL ";checkpoint;[recompute];[module] Block;add", 1000);
	add(&run.paths, "checkpoint;[recompute];[module] Block;[module] mlp;add", 10000);
	MODULE("Model", (0, 100, 1011), (0, 0, 0), 1);
	MODULE("layers.*", (0, 100, 11), (0, 0, 0), 1);
	MODULE("layers.*.<Block>", (0, 100, 11), (0, 0, 10), 1);
	MODULE("layers.*.<Block>.mlp", (0, 100, 1), (0, 100, 0), 1);
	MODULE("layers.*.<Block>.mlp.0", (0, 0, 1), (0, 0, 1), 1);
	MODULE("<Block>", (0, 0, 1000), (0, 0, 1000), 1);
	MODULE("Block", (0, 0, 10000), (0, 0, 0), 1);
	MODULE("mlp", (0, 0, 10000), (0, 0, 10000), 1);
	paths_free(&run.paths);
}

/* A module within itself counts once, and models of two classes have rows of their own. */
static void recursion_counts_once(void **state)
{
	struct sums sums;
	struct run run;
	struct table_rows rows;

	(void)state;
	begin(&run, &sums);
	add(&run.paths, "[module] A;[module] 0.x;[module] 1.x;[module] 0.x;gemm", 7);
	add(&run.paths, "[module] B;[module] 0;gemm", 5);
	MODULE("A", (7, 0, 0), (0, 0, 0), 1);
	MODULE("*.x", (7, 0, 0), (7, 0, 0), 2);
	rows = table_open(&table_modules, &run);
	assert_int_equal(rows.count, 4);
	table_close(&rows);
	paths_free(&run.paths);
}

static uint64_t column_sum(const struct run *run, const struct table_def *def, const char *name)
{
	struct table_rows rows = table_open(def, run);
	struct cell cells[COLUMNS_MAX];
	uint64_t sum = 0;

	for (size_t r = 0; r < rows.count; r++) {
		table_row(&rows, r, cells);
		sum += number(def, cells, name);
	}
	table_close(&rows);
	return sum;
}

static void own_times_add_up_in_random_trees(void **state)
{
	static const char *const frames[] = {"f",
					     "[module] M",
					     "[module] a.1",
					     "[module] a.2",
					     "[module] a.2.b",
					     "[backward] Mm",
					     "[recompute]",
					     "[module] <...>.x",
					     "[module] "};
	static const struct table_def *const defs[] = {&table_modules, &table_module_layers};
	struct sums sums;
	struct run run;

	(void)state;
	srand(1);
	for (int tree = 0; tree < TREES; tree++) {
		uint64_t wanted_ns = 0, wanted_count = 0;
		bool is_inside[PATH_NODES + 1] = {false};

		begin(&run, &sums);
		for (int i = 0; i < PATH_NODES; i++) {
			const char *frame =
				frames[(size_t)rand() % (sizeof(frames) / sizeof(*frames))];
			uint32_t parent = (uint32_t)rand() % run.paths.node_count;
			uint32_t node =
				paths_child(&run.paths, parent,
					    names_intern(&run.paths.names, frame, strlen(frame)));
			uint64_t ns = (uint64_t)rand();

			is_inside[node] = is_inside[parent] || !strncmp(frame, "[module] ", 9);
			run.paths.nodes[node].weights[WEIGHT_GPU_TIME] += ns;
			run.paths.nodes[node].weights[WEIGHT_COUNT] += 1;
			wanted_ns += is_inside[node] ? ns : 0;
			wanted_count += is_inside[node];
		}
		for (int d = 0; d < 2; d++) {
			assert_int_equal(column_sum(&run, defs[d], "own_gpu_time_ns"), wanted_ns);
			assert_int_equal(column_sum(&run, defs[d], "own_count"), wanted_count);
			assert_int_equal(column_sum(&run, defs[d], "own_forward_ns") +
						 column_sum(&run, defs[d], "own_backward_ns") +
						 column_sum(&run, defs[d], "own_recompute_ns"),
					 wanted_ns);
		}
		paths_free(&run.paths);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_are_folded_and_passes_told_apart),
		cmocka_unit_test(recomputed_modules_are_below_the_checkpoint),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(own_times_add_up_in_random_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
