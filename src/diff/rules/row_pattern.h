/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names rows as rules do: "path(forward/attention)", or "gpu-time" for a total.
 */
#ifndef XT_DIFF_ROW_PATTERN_H
#define XT_DIFF_ROW_PATTERN_H

#include "diff/base/level.h"

/* Is this a pattern? */
bool row_pattern_is_valid(const char *pattern);

/* Does the pattern name the row with this key? The pattern "" names all rows. */
bool row_pattern_matches(const char *pattern, enum level level, const char *key);

#endif
