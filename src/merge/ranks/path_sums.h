/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time by call path of the ranks in a block, and how much slower collectives made it.
 *
 * A collective that waits keeps a part of the GPU busy. Kernels beside it take longer, large
 * matrix products up to 50 %. So a rank that waits beside its own work loses time,
 * too, although it never seems to wait. The late rank has the same kernels without a wait.
 */
#ifndef XT_MERGE_PATH_SUMS_H
#define XT_MERGE_PATH_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct paths;

struct path_sums {
	uint64_t *all_ns;    /* by node, of all ranks */
	uint64_t *beside_ns; /* by node: of the other ranks, in kernels beside collectives */
	bool *is_kernel;     /* by node: it ends in a kernel other than a collective */
	bool *is_touched;    /* by node: it has time */
	uint32_t *touched;   /* these nodes */
	size_t touched_count;
	size_t node_count;
};

/* Free it with path_sums_free(). */
void path_sums_init(struct path_sums *sums, const struct paths *paths);
void path_sums_free(struct path_sums *sums);

/* Nodes that do not exist are left out. */
void path_sums_add(struct path_sums *sums, uint32_t node, uint64_t ns, uint64_t beside_ns);
void path_sums_clear(struct path_sums *sums);

/*
 * Returns the mean time by which collectives slowed the kernels of the other ranks.
 *
 * late_ns: time of the late rank, by node
 * others:  number of other ranks, at least 1
 */
double path_sums_slowed_ns(const struct path_sums *sums, const uint64_t *late_ns, size_t others);

#endif
