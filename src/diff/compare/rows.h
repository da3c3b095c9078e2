/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a comparison, and matching of call paths whose keys differ, because a function was
 * renamed, inlined or wrapped.
 */
#ifndef XT_DIFF_ROWS_H
#define XT_DIFF_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "diff/compare/comparison.h"

#define MATCH_NONE SIZE_MAX

/*
 * base and new are keys that only one side has. matches_out[b] becomes the index of the match in
 * new, or MATCH_NONE.
 */
void match_paths(const char *const *base, size_t base_count, const char *const *new,
		 size_t new_count, size_t *matches_out);

/* Rows that only one side has. All zeros is empty. */
struct row_keys {
	const char **keys;
	size_t *rows;
	size_t count, key_capacity, row_capacity;
};

void row_keys_add(struct row_keys *keys, const char *key, size_t row);
void row_keys_free(struct row_keys *keys);

/* The result of match_paths() for two lists. The caller frees it. */
size_t *row_keys_match(const struct row_keys *base, const struct row_keys *new);

/* Makes comparison->rows from the runs, without effects. */
void compare_rows_make(struct comparison *comparison);

#endif
