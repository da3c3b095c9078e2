/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/weighted_median.h"

#include <math.h>
#include <stdlib.h>

#include "log/base/compare.h"

double median(double *list, size_t count)
{
	qsort(list, count, sizeof(*list), compare_doubles);
	if (!count)
		return NAN;
	return count % 2 ? list[count / 2] : (list[count / 2 - 1] + list[count / 2]) / 2.0;
}

double weighted_median(struct weighted_value *list, size_t count)
{
	double sum = 0.0, below = 0.0;

	qsort(list, count, sizeof(*list), compare_doubles); /* of the first member */
	for (size_t i = 0; i < count; i++)
		sum += list[i].weight;
	for (size_t i = 0; i < count; i++) {
		below += list[i].weight;
		if (below >= sum / 2.0)
			return list[i].value;
	}
	return NAN;
}
