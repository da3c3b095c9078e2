/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates for libcupti, best first. Start-up only; may allocate.
 */
#ifndef XT_INJECT_CUPTI_SEARCH_H
#define XT_INJECT_CUPTI_SEARCH_H

#include <limits.h>
#include <stdbool.h>

struct cupti_candidate {
	char path[PATH_MAX]; /* for dlopen(): absolute, or a bare name */
	const char *rule;    /* static: the rule that found it */
};

struct cupti_search;

/* asked_path: if not empty, the only candidate. NULL if out of memory. */
struct cupti_search *cupti_search_begin(const char *asked_path);

/* The next candidate that exists; false when there are no more. */
bool cupti_search_next(struct cupti_search *search, struct cupti_candidate *candidate);

/* The searched places, for a message; valid until cupti_search_end(). */
const char *cupti_search_places(const struct cupti_search *search);

void cupti_search_end(struct cupti_search *search);

#endif
