/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of times from logs. Damaged logs have times whose sums overflow.
 */
#ifndef XT_MERGE_SATURATING_H
#define XT_MERGE_SATURATING_H

#include <stdint.h>

/* Adds without wrapping around. The values come from a file and may be arbitrary. */
static inline void saturating_add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

#endif
