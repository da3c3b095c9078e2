/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call path of one side is which of the other, where their keys differ: a function was renamed, inlined,
 * or has a wrapper now.
 */
#ifndef XT_DIFF_MATCH_PATHS_H
#define XT_DIFF_MATCH_PATHS_H

#include <stddef.h>
#include <stdint.h>

#define MATCH_NONE SIZE_MAX

/*
 * keys: of paths that only BASE has, then of those that only NEW has. matches_out[b] becomes the place
 * of its match among the latter, or MATCH_NONE. 0 or -ENOMEM.
 */
int match_paths(const char *const *base, size_t base_count, const char *const *new,
		size_t new_count, size_t *matches_out);

#endif
