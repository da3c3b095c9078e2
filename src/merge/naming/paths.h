/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of call paths of all processes: what the folded output and the summary print.
 *
 * A node is a frame below its parent; its name is in a table of names. What
 * ends in a node gives it weight.
 */
#ifndef XT_MERGE_PATHS_H
#define XT_MERGE_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/base/names.h"
#include "merge/base/weights.h"

#define PATH_ROOT   0
#define PATH_FAILED UINT32_MAX

struct path_node {
	uint32_t parent;
	uint32_t name;
	uint64_t weights[WEIGHTS]; /* of what ends in this very node */
};

struct paths {
	struct names names; /* clean text: see text_clean() */
	struct path_node *nodes;
	size_t node_capacity;
	uint32_t node_count;
	struct xt_hash_table by_parent_and_name;
	uint8_t *is_user_code; /* by name, as far as it goes: paths_is_user_code() */
	size_t user_code_capacity;
};

/* 0 or -ENOMEM. */
int paths_init(struct paths *paths);
void paths_free(struct paths *paths);

/* The node of that name below parent, made if need be. PATH_FAILED if memory ran out. */
uint32_t paths_child(struct paths *paths, uint32_t parent, uint32_t name);

/* Notes that frames of that name stand in a file of the user's (not NAME_FAILED). 0 or -ENOMEM. */
int paths_mark_user_code(struct paths *paths, uint32_t name);

/* Was that noted? */
static inline bool paths_is_user_code(const struct paths *paths, uint32_t name)
{
	return name < paths->user_code_capacity && paths->is_user_code[name];
}

/*
 * The nodes that carry that weight, in the order of their printed paths (as LC_ALL=C sort has it).
 * *leaves_out is given back with free(). 0 or -ENOMEM.
 */
int paths_leaves(const struct paths *paths, enum weight weight, uint32_t **leaves_out,
		 uint32_t *count_out);

/* Does the node carry that weight? GPU time may be 0: what took it counts. */
static inline bool path_carries(const struct path_node *node, enum weight weight)
{
	return node->weights[weight == WEIGHT_GPU_TIME ? WEIGHT_COUNT : weight] != 0;
}

/*
 * The nodes from the root (not included) down to node, into *chain and *capacity as grow() has
 * them. The number of nodes or -ENOMEM.
 */
int paths_chain(const struct paths *paths, uint32_t node, uint32_t **chain, size_t *capacity);

/* The names of these nodes with semicolons between; to be given back with free(). NULL if memory ran
 * out. */
char *paths_text(const struct paths *paths, uint32_t node, size_t *length_out);

#endif
