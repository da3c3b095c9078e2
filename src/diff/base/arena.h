/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: many small allocations that are freed together.
 */
#ifndef XT_DIFF_ARENA_H
#define XT_DIFF_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *memory); /* accepts NULL */

/* Zeroed memory, aligned for any type. */
void *arena_alloc(struct arena *memory, size_t bytes);
char *arena_copy_text(struct arena *memory, const char *text, size_t length);

#endif
