/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random call paths for tests of unwinding. call_paths.c is compiled with several sets of options.
 */
#ifndef XT_TESTS_SAMPLER_CALL_PATHS_H
#define XT_TESTS_SAMPLER_CALL_PATHS_H

#include <stdint.h>

#define CALL_PATH_KINDS 9

struct call_path {
	void (*bottom)(struct call_path *path);
	void (*block)(const struct call_path *path, uint32_t *word);
	uint64_t (*spin)(uint64_t rounds);
	/* futex() without a frame; NULL: the path ends in `bottom`. */
	long (*leaf)(uint32_t *word, long operation, long value, long timeout);
	long (*leaf_many)(uint32_t *word, long operation, long value, long timeout, long, long,
			  long, long, long);
	uint32_t *word;
};

/* The sets of options in CMakeLists.txt, by name. */
#define CALL_PATH_VARIANTS(X) X(o0) X(o0_no_fp) X(o1) X(o2) X(o2_fp) X(os_fp) X(o2_fp_protected)

#define CALL_PATH_DECLARE(name) void call_paths_##name(struct call_path *path, unsigned seed);
CALL_PATH_VARIANTS(CALL_PATH_DECLARE)

#endif
