/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/path_sums.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/naming/paths.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/saturating.h"

void path_sums_init(struct path_sums *sums, const struct paths *paths)
{
	size_t node_count = paths->node_count;

	*sums = (struct path_sums){
		.all_ns = xt_calloc(node_count, sizeof(*sums->all_ns)),
		.beside_ns = xt_calloc(node_count, sizeof(*sums->beside_ns)),
		.is_kernel = xt_calloc(node_count, sizeof(*sums->is_kernel)),
		.is_touched = xt_calloc(node_count, sizeof(*sums->is_touched)),
		.touched = xt_calloc(node_count, sizeof(*sums->touched)),
		.node_count = node_count,
	};
	for (uint32_t node = 0; node < node_count; node++)
		sums->is_kernel[node] = wait_cause_is_kernel(paths, node);
}

void path_sums_free(struct path_sums *sums)
{
	free_all(sums->all_ns, sums->beside_ns, sums->is_kernel, sums->is_touched, sums->touched);
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

/*
 * Time of the others divided by that of the late rank, for the same kernels without a collective
 * beside them. Above 1, their work or their GPUs differ. Never below 1.
 */
static double own_ratio(const struct path_sums *sums, const uint64_t *late_ns, double others)
{
	double own_sum_ns = 0, late_sum_ns = 0;

	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];
		double own_ns = (double)(sums->all_ns[node] - late_ns[node]) / others;

		/* Kernels that take longer in the late rank are what makes it late. */
		if (!sums->is_kernel[node] || sums->beside_ns[node] || !late_ns[node] ||
		    own_ns < (double)late_ns[node])
			continue;
		own_sum_ns += own_ns;
		late_sum_ns += (double)late_ns[node];
	}
	return late_sum_ns > 0 ? own_sum_ns / late_sum_ns : 1;
}

double path_sums_slowed_ns(const struct path_sums *sums, const uint64_t *late_ns, size_t others)
{
	double ratio = own_ratio(sums, late_ns, (double)others), sum_ns = 0;

	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];
		double beside_ns = (double)sums->beside_ns[node] / (double)others;
		double own_ns = (double)(sums->all_ns[node] - late_ns[node]) / (double)others;
		double more_ns = own_ns - ratio * (double)late_ns[node];

		/* Kernels vary by chance, so shorter ones reduce the sum. */
		if (beside_ns > 0)
			sum_ns += fmax(fmin(more_ns, beside_ns), -beside_ns);
	}
	return fmax(sum_ns, 0);
}
