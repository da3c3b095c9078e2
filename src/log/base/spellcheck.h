/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may have been meant by a name that is not known.
 */
#ifndef XT_LOG_SPELLCHECK_H
#define XT_LOG_SPELLCHECK_H

#include <stddef.h>

struct suggestion {
	const char *name; /* as it was given, of length bytes */
	size_t length;
	const char *best; /* the nearest so far; NULL: none is near */
	size_t distance;
};

/*
 * Near is what takes one insertion, deletion, change or swap of neighbours for every three letters
 * at most. candidate must outlive the suggestion. The first of several that are as
 * near stays.
 */
void suggest_consider(struct suggestion *suggestion, const char *candidate);

#endif
