/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons why a comparison is inconclusive, one line each, for people. Any problem makes the exit
 * status 2. All zeros is an empty list.
 */
#ifndef XT_DIFF_PROBLEMS_H
#define XT_DIFF_PROBLEMS_H

#include <stddef.h>

struct problems {
	char **lines;
	size_t count;
	size_t capacity;
};

/* Appends a line unless the list contains it. */
void problems_add(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void problems_free(struct problems *problems);

/* As errors, to stderr. */
void problems_print(const struct problems *problems);

#endif
