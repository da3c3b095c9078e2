/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost frame of the user's own code, and its line.
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

static void check(const struct paths *paths, uint32_t leaf, const char *where)
{
	char *found = paths_frame_where(paths, path_own_frame(paths, leaf, MARKS_USER));

	assert_string_equal(found, where);
	free(found);
}

/* nvcc generates a host function with the name of the kernel. */
static void kernels_belong_to_the_caller_of_their_host_function(void **state)
{
	uint32_t step, copies, host;
	struct paths paths;

	(void)state;
	paths_init(&paths);
	step = child(&paths, PATH_ROOT, "step");
	copies = child(&paths, PATH_ROOT, "copies");
	host = child(&paths, step, "saxpy(float*)");
	mark(&paths, step, 12);
	mark(&paths, host, 3);
	mark(&paths, copies, 20);
	mark(&paths, copies, 21);
	check(&paths, child(&paths, child(&paths, host, "cudaLaunchKernel"), KERNEL),
	      "step (a.cu:12)");
	check(&paths, child(&paths, step, COLLECTIVE), "step (a.cu:12)");
	check(&paths, child(&paths, copies, "[GPU_Memcpy HtoD]"), "copies");
	assert_int_equal(path_own_frame(&paths, child(&paths, PATH_ROOT, KERNEL), MARKS_USER),
			 NAME_EMPTY);
	paths_free(&paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_belong_to_the_caller_of_their_host_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
