/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of call paths of all processes: what the folded output and the summary print.
 *
 * A node is a frame below its parent; its name is in a table of names. Kernels are the leaves
 * that carry weight.
 */
#ifndef XT_MERGE_PATHS_H
#define XT_MERGE_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/names.h"

#define PATH_ROOT   0
#define PATH_FAILED UINT32_MAX

struct path_node {
	uint32_t parent;
	uint32_t name;
	uint64_t gpu_ns; /* of the kernels that are this very node */
	uint64_t kernel_count;
};

struct paths {
	struct names names; /* clean text: see text_clean() */
	struct path_node *nodes;
	size_t node_capacity;
	uint32_t node_count;
	uint32_t *slots; /* node by hash of parent and name; 0 is free */
	uint32_t slot_count;
};

/* 0 or -ENOMEM. */
int paths_init(struct paths *paths);
void paths_free(struct paths *paths);

/* The node of that name below parent, made if need be. PATH_FAILED if memory ran out. */
uint32_t paths_child(struct paths *paths, uint32_t parent, uint32_t name);

/*
 * The nodes that carry kernels, in the order of their printed paths (as LC_ALL=C sort has it).
 * *leaves_out is given back with free(). 0 or -ENOMEM.
 */
int paths_leaves(const struct paths *paths, uint32_t **leaves_out, uint32_t *count_out);

/*
 * The nodes from the root (not included) down to node, into *chain and *capacity as grow() has
 * them. The number of nodes or -ENOMEM.
 */
int paths_chain(const struct paths *paths, uint32_t node, uint32_t **chain, size_t *capacity);

#endif
