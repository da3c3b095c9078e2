/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Match the pattern of a rule against the key of a row.
 */
#ifndef XT_DIFF_RULE_MATCH_H
#define XT_DIFF_RULE_MATCH_H

#include <stdbool.h>

/*
 * The parts of the pattern, separated by '/', must match frames of the key in this order. With
 * to_end, the last part must match the last frame; use it for rows that include everything below
 * them.
 */
bool rule_matches(const char *pattern, const char *key, bool to_end);

#endif
