/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is taken piece by piece and given back at once.
 */
#ifndef XT_DIFF_ARENA_H
#define XT_DIFF_ARENA_H

#include <stddef.h>

struct arena;

/* NULL if memory ran out. */
struct arena *arena_new(void);
void arena_free(struct arena *memory); /* accepts NULL */

/* Zeroed; NULL if memory ran out. */
void *arena_alloc(struct arena *memory, size_t bytes);
char *arena_copy_text(struct arena *memory, const char *text, size_t length);

#endif
