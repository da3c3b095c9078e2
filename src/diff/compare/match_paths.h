/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Match the call paths of both sides whose keys differ, because a function was renamed, inlined or
 * wrapped.
 */
#ifndef XT_DIFF_MATCH_PATHS_H
#define XT_DIFF_MATCH_PATHS_H

#include <stddef.h>
#include <stdint.h>

#define MATCH_NONE SIZE_MAX

/*
 * base and new are keys that only one side has. matches_out[b] becomes the index of the match in
 * new, or MATCH_NONE.
 */
void match_paths(const char *const *base, size_t base_count, const char *const *new,
		 size_t new_count, size_t *matches_out);

#endif
