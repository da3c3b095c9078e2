/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_LOG_WEIGHTED_MEDIAN_H
#define XT_LOG_WEIGHTED_MEDIAN_H

#include <stddef.h>

struct weighted_value {
	double value, weight; /* in this order */
};

/* Sort the list. NAN if it is empty. */
double median(double *list, size_t count);
double weighted_median(struct weighted_value *list, size_t count);

#endif
