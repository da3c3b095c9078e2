/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a comparison cannot be judged: each reason is a line for people, and any one makes the exit status 2.
 * All zeros is an empty list.
 */
#ifndef XT_DIFF_PROBLEMS_H
#define XT_DIFF_PROBLEMS_H

#include <stddef.h>

struct problems {
	char **lines;
	size_t count;
	size_t capacity;
};

/* Keeps the line once, however often it is told. (Without memory it goes to stderr at once.) */
void problems_add(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void problems_free(struct problems *problems);

#endif
