/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/path_sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "merge/sums/saturating.h"

int path_sums_init(struct path_sums *sums, size_t node_count)
{
	*sums = (struct path_sums){
		.all_ns = calloc(node_count, sizeof(*sums->all_ns)),
		.beside_ns = calloc(node_count, sizeof(*sums->beside_ns)),
		.is_touched = calloc(node_count, sizeof(*sums->is_touched)),
		.touched = calloc(node_count, sizeof(*sums->touched)),
		.node_count = node_count,
	};
	return sums->all_ns && sums->beside_ns && sums->is_touched && sums->touched ? 0 : -ENOMEM;
}

void path_sums_free(struct path_sums *sums)
{
	free(sums->all_ns);
	free(sums->beside_ns);
	free(sums->is_touched);
	free(sums->touched);
}

void path_sums_add(struct path_sums *sums, uint32_t node, uint64_t ns, uint64_t beside_ns)
{
	if (node >= sums->node_count)
		return;
	if (!sums->is_touched[node])
		sums->touched[sums->touched_count++] = node;
	sums->is_touched[node] = true;
	saturating_add(&sums->all_ns[node], ns);
	saturating_add(&sums->beside_ns[node], beside_ns);
}

void path_sums_clear(struct path_sums *sums)
{
	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];

		sums->all_ns[node] = sums->beside_ns[node] = 0;
		sums->is_touched[node] = false;
	}
	sums->touched_count = 0;
}

double path_sums_slowed_ns(const struct path_sums *sums, const uint64_t *late_ns, size_t others)
{
	double sum_ns = 0;

	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];
		double beside_ns = (double)sums->beside_ns[node] / (double)others;
		double own_ns = (double)(sums->all_ns[node] - late_ns[node]) / (double)others;

		/* Paths that are shorter in the others count against it: work varies by itself. */
		if (beside_ns > 0)
			sum_ns += fmin(own_ns - (double)late_ns[node], beside_ns);
	}
	return fmax(sum_ns, 0);
}
