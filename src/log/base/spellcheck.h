/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the known name closest to a misspelled one.
 */
#ifndef XT_LOG_SPELLCHECK_H
#define XT_LOG_SPELLCHECK_H

#include <stddef.h>

struct suggestion {
	const char *name; /* the misspelled name, `length` bytes */
	size_t length;
	const char *best; /* the closest candidate so far; NULL: none is close enough */
	size_t distance;
};

/*
 * Considers a candidate. It is close enough if it differs by at most one edit for every three
 * letters. On a tie the earlier candidate wins. `candidate` must outlive the suggestion.
 */
void suggest_consider(struct suggestion *suggestion, const char *candidate);

#endif
