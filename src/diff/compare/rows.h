/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a comparison, and matching of call paths whose keys differ, because a function was
 * renamed, inlined or wrapped.
 */
#ifndef XT_DIFF_ROWS_H
#define XT_DIFF_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "diff/compare/comparison.h"

#define MATCH_NONE SIZE_MAX

/* Call paths that only one side has. All zeros is empty. The caller frees list. */
struct lone_paths {
	struct lone_path {
		const char *key;
		size_t row;
		size_t match; /* row of the other side, or MATCH_NONE; set by match_paths() */
	} * list;
	size_t count, capacity;
};

static inline void lone_paths_add(struct lone_paths *paths, const char *key, size_t row)
{
	list_append(*paths, (struct lone_path){key, row, 0});
}

/* Matches similar paths. Each gets at most one match. */
void match_paths(struct lone_paths *base, struct lone_paths *new);

/* Makes comparison->rows from the runs, without effects. */
void compare_rows_make(struct comparison *comparison);

#endif
