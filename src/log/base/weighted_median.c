/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/weighted_median.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct weighted_value *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

double weighted_median(struct weighted_value *list, size_t count)
{
	double sum = 0.0, below = 0.0;

	qsort(list, count, sizeof(*list), compare);
	for (size_t i = 0; i < count; i++)
		sum += list[i].weight;
	for (size_t i = 0; i < count; i++) {
		below += list[i].weight;
		if (below >= sum / 2.0)
			return list[i].value;
	}
	return NAN;
}
