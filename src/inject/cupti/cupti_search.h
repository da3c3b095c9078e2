/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a libcupti may lie, best first. Start-up only; may allocate.
 */
#ifndef XT_INJECT_CUPTI_SEARCH_H
#define XT_INJECT_CUPTI_SEARCH_H

#include <limits.h>
#include <stdbool.h>

struct cupti_candidate {
	char path
		[PATH_MAX]; /* for dlopen(): absolute, or a bare name for the loader's own search */
	const char *rule;   /* static: which rule gave it */
};

struct cupti_search;

/* asked_path: if not empty, the only candidate. NULL if there is no memory. */
struct cupti_search *cupti_search_begin(const char *asked_path);

/* The next candidate that exists; false when there are no more. */
bool cupti_search_next(struct cupti_search *search, struct cupti_candidate *candidate);

/* The places that were searched, as text for the user; valid until cupti_search_end(). */
const char *cupti_search_places(const struct cupti_search *search);

void cupti_search_end(struct cupti_search *search);

#endif
