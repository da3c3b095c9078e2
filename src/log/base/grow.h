/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by doubling. New elements are zeroed.
 */
#ifndef XT_LOG_GROW_H
#define XT_LOG_GROW_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for `needed` elements in the array. Array and capacity (in elements) start as NULL and
 * 0; the caller frees the array. Returns 0, or -ENOMEM and leaves the array unchanged.
 */
#define grow(array, capacity, needed) grow_bytes(&(array), &(capacity), (needed), sizeof(*(array)))
static inline int grow_bytes(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
	void **place = array;
	size_t wanted = *capacity ? *capacity : 16;
	void *larger;

	if (needed <= *capacity)
		return 0;
	while (wanted < needed)
		if (__builtin_mul_overflow(wanted, (size_t)2, &wanted))
			return -ENOMEM;
	if (wanted > SIZE_MAX / element_bytes)
		return -ENOMEM;
	larger = realloc(*place, wanted * element_bytes);
	if (!larger)
		return -ENOMEM;
	memset((char *)larger + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
	*place = larger;
	*capacity = wanted;
	return 0;
}

/* A list that grows at its end. Zeros are an empty one; the caller frees `list`. */
#define LIST(type)                                                                                 \
	struct {                                                                                   \
		type *list;                                                                        \
		size_t count, capacity;                                                            \
	}

/*
 * An array by id that grows to the largest one in use. Zeros are an empty array; the caller frees
 * `list`.
 */
#define BY_ID(type)                                                                                \
	struct {                                                                                   \
		type *list;                                                                        \
		size_t capacity;                                                                   \
	}

/* The element of an id; 0 if the array does not reach it. */
#define by_id_get(array, id) ((id) < (array).capacity ? (array).list[id] : 0)

/* Inserts an element into an array that has room for it, and removes one. */
#define array_insert(array, count, at, element)                                                    \
	(memmove(&(array)[(at) + 1], &(array)[at], ((count)++ - (at)) * sizeof(*(array))),         \
	 (void)((array)[at] = (element)))
#define array_remove(array, count, at)                                                             \
	(void)memmove(&(array)[at], &(array)[(at) + 1], (--(count) - (at)) * sizeof(*(array)))

static inline void free_list(void *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i]);
}

/* Frees each argument, in order. All are evaluated first. */
#define free_all(...)                                                                              \
	free_list((void *const[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

#endif
