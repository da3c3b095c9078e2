/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is taken piece by piece and given back at once.
 */
#ifndef XT_DIFF_ARENA_H
#define XT_DIFF_ARENA_H

#include <stddef.h>

struct run_memory;

/* NULL if memory ran out. */
struct run_memory *run_memory_new(void);
void run_memory_free(struct run_memory *memory); /* accepts NULL */

/* Zeroed; NULL if memory ran out. */
void *run_memory_get(struct run_memory *memory, size_t bytes);
char *run_memory_text(struct run_memory *memory, const char *text, size_t length);

#endif
