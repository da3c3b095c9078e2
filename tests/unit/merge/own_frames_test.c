/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by innermost frame of the user's own code, and the line of such a frame.
 */
#include "merge/sums/build_tree.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/sums/path_tables.h"

#define KERNEL	   LEAF_KERNEL_MARK "saxpy(float*)"
#define COLLECTIVE LEAF_KERNEL_MARK "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

static uint32_t child(struct paths *paths, uint32_t parent, const char *name)
{
	return paths_child(paths, parent, names_intern(&paths->names, name, strlen(name)));
}

static void mark(struct paths *paths, uint32_t node, uint32_t line)
{
	paths_mark_line(paths, paths->nodes[node].name, "/m/a.cu", line);
}

static void add(struct paths *paths, uint32_t parent, const char *leaf, uint64_t ns)
{
	paths->nodes[child(paths, parent, leaf)].weights[WEIGHT_GPU_TIME] += ns;
}

static void check_row(const struct paths *paths, const struct table_row *row, const char *where,
		      uint64_t ns)
{
	char *found = paths_frame_where(paths, row->id);

	assert_string_equal(found, where);
	assert_int_equal(row->value, ns);
	free(found);
}

/* nvcc generates a host function with the name of the kernel. */
static void kernels_belong_to_the_caller_of_their_host_function(void **state)
{
	uint32_t step, copies, host;
	uint64_t collectives_ns = 0;
	struct paths paths;
	struct table table;

	(void)state;
	paths_init(&paths);
	step = child(&paths, PATH_ROOT, "step");
	copies = child(&paths, PATH_ROOT, "copies");
	host = child(&paths, step, "saxpy(float*)");
	mark(&paths, step, 12);
	mark(&paths, host, 3);
	mark(&paths, copies, 20);
	mark(&paths, copies, 21);
	add(&paths, child(&paths, host, "cudaLaunchKernel"), KERNEL, 5);
	add(&paths, step, COLLECTIVE, 7);
	add(&paths, copies, "[GPU_Memcpy HtoD]", 6);
	add(&paths, PATH_ROOT, KERNEL, 100);

	table_own_frames(&table, &paths, NULL);
	assert_int_equal(table.count, 2);
	check_row(&paths, &table.rows[0], "step (a.cu:12)", 12);
	check_row(&paths, &table.rows[1], "copies", 6);
	table_free(&table);

	table_own_frames(&table, &paths, &collectives_ns);
	assert_int_equal(table.count, 2);
	check_row(&paths, &table.rows[0], "copies", 6);
	check_row(&paths, &table.rows[1], "step (a.cu:12)", 5);
	assert_int_equal(collectives_ns, 7);
	table_free(&table);
	paths_free(&paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_belong_to_the_caller_of_their_host_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
