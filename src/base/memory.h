/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for offline commands. These functions never return NULL: if memory runs out, they end the
 * process with xt_out_of_memory(). Free the results with free(). For any thread.
 *
 * The injected library, the sampler and commands that run for long must not use them. Code that
 * reads a file checks a length against the file's size before it allocates that much.
 */
#ifndef XT_BASE_MEMORY_H
#define XT_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "log/base/grow.h"

/*
 * Prints one line, removes unfinished outputs (base/unfinished.h) and exits with status 2. bytes:
 * the size of the failed allocation, or 0 if it is unknown.
 */
_Noreturn void xt_out_of_memory(size_t bytes);

void *xt_malloc(size_t bytes);
void *xt_calloc(size_t count, size_t element_bytes);
void *xt_reallocarray(void *array, size_t count, size_t element_bytes);

/* See grow() in log/base/grow.h. */
#define xt_grow(array, capacity, needed)                                                           \
	xt_grow_bytes(&(array), &(capacity), (needed), sizeof(*(array)))
static inline void xt_grow_bytes(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
	if (grow_bytes(array, capacity, needed, element_bytes) < 0)
		xt_out_of_memory(element_bytes * needed);
}

/* The place of a new element at the end of an array, and an element that is added there. */
#define xt_new(array, count, capacity) (xt_grow(array, capacity, (count) + 1), &(array)[(count)++])
#define xt_append(array, count, capacity, ...)                                                     \
	(xt_grow(array, capacity, (count) + 1), (void)((array)[(count)++] = __VA_ARGS__))

/* The same for a LIST(), and room for `needed` elements in it. */
#define list_new(l)		xt_new((l).list, (l).count, (l).capacity)
#define list_append(l, ...)	xt_append((l).list, (l).count, (l).capacity, __VA_ARGS__)
#define list_reserve(l, needed) xt_grow((l).list, (l).capacity, (needed))

/* The place of an id in a BY_ID() array. */
#define by_id(array, id)                                                                           \
	(xt_grow((array).list, (array).capacity, (size_t)(id) + 1), &(array).list[id])

char *xt_strdup(const char *text);
char *xt_strndup(const char *text, size_t length_max);
char *xt_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xt_vasprintf(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/*
 * A stream that collects its text in memory. xt_close_memstream() closes it. *text is complete
 * then, and the caller frees it.
 */
FILE *xt_open_memstream(char **text, size_t *bytes);
void xt_close_memstream(FILE *stream);

/* An arena: many small allocations that are freed together. */
struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *memory); /* accepts NULL */

/* Zeroed memory, aligned for any type. */
void *arena_alloc(struct arena *memory, size_t bytes);
char *arena_copy_text(struct arena *memory, const char *text, size_t length);

#endif
