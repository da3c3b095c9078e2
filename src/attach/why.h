/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line for the user: why a process or thread cannot be used.
 */
#ifndef XT_ATTACH_WHY_H
#define XT_ATTACH_WHY_H

#include <stddef.h>

struct why {
	char *text; /* of the caller */
	size_t bytes;
};

/* Writes the line, cut to its room. Returns error. */
__attribute__((format(printf, 3, 4))) int refuse(const struct why *why, int error,
						 const char *format, ...);

#endif
