/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may have been meant by a name that is not known.
 */
#ifndef XT_MERGE_SUGGEST_H
#define XT_MERGE_SUGGEST_H

#include <stddef.h>

#define SUGGEST_DISTANCE_MAX 3 /* insertions, deletions and changes */

struct suggestion {
	const char *name; /* as it was given, of length bytes */
	size_t length;
	const char *best; /* the nearest so far; NULL: none is near */
	size_t distance;
};

/* candidate must outlive the suggestion. The first of several that are as near stays. */
void suggest_consider(struct suggestion *suggestion, const char *candidate);

#endif
