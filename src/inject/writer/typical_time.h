/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The median of the latest times of a range or an iteration. Writer thread only.
 */
#ifndef XT_INJECT_TYPICAL_TIME_H
#define XT_INJECT_TYPICAL_TIME_H

#include <stdint.h>

#define TYPICAL_TIMES	  64 /* the median is of so many */
#define TYPICAL_TIMES_MIN 16 /* fewer have no median yet */

/* Zeros are no times. */
struct typical_time {
	uint64_t latest_ns[TYPICAL_TIMES]; /* the oldest is replaced next */
	uint64_t sorted_ns[TYPICAL_TIMES];
	uint32_t count, oldest;
};

/* The median of the earlier times; 0 while there are fewer than TYPICAL_TIMES_MIN. */
uint64_t typical_time_median_ns(const struct typical_time *typical);

/* Adds a time, and forgets the oldest one. */
void typical_time_add(struct typical_time *typical, uint64_t time_ns);

#endif
