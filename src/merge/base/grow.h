/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by doubling. What is added is zeroed.
 */
#ifndef XT_MERGE_GROW_H
#define XT_MERGE_GROW_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Sees to it that *array has room for needed elements. *array and *capacity (in elements) begin
 * as NULL and 0 and change together; the array is given back with free(). 0 or -ENOMEM, after
 * which the array is as it was.
 */
static inline int grow(void *array, size_t *capacity, size_t needed, size_t element_bytes)
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

#endif
