/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree of the call paths of all processes, for folded stacks and the summary.
 *
 * A node is a frame below its parent. Its weights count only what ends at this node.
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
	uint64_t weights[WEIGHTS]; /* of work that ends at this node */
};

struct paths {
	struct names names; /* printable: see text_clean() */
	struct path_node *nodes;
	size_t node_capacity;
	uint32_t node_count;
	struct xt_hash_table by_parent_and_name;
	uint8_t *user_code; /* by name: enum user_code; shorter than names */
	size_t user_code_capacity;
};

/* Returns 0 or -ENOMEM. */
int paths_init(struct paths *paths);
void paths_free(struct paths *paths);

/* Finds or adds the child of parent with this name. Returns PATH_FAILED if out of memory. */
uint32_t paths_child(struct paths *paths, uint32_t parent, uint32_t name);

/* Why a frame is the user's own code. */
enum user_code {
	USER_FILE = 1,	 /* its line is in the user's file */
	USER_MODULE = 2, /* its line is unknown, and its module is no installed library */
};

/* Marks a name as user code. name must not be NAME_FAILED. Returns 0 or -ENOMEM. */
int paths_mark_user_code(struct paths *paths, uint32_t name, enum user_code why);

/* Returns whether the name is a frame in the user's files. */
static inline bool paths_is_user_code(const struct paths *paths, uint32_t name)
{
	return name < paths->user_code_capacity && paths->user_code[name] & USER_FILE;
}

/* Returns whether the path down to a node has a frame of user code, for any reason. */
bool paths_has_user_code(const struct paths *paths, uint32_t node);

/*
 * Collects the nodes with this weight, in the order of their printed paths (LC_ALL=C sort). The
 * caller frees *leaves_out. Returns 0 or -ENOMEM.
 */
int paths_leaves(const struct paths *paths, enum weight weight, uint32_t **leaves_out,
		 uint32_t *count_out);

/* Returns whether the node has this weight. GPU work may take 0 ns, so GPU time tests the count. */
static inline bool path_carries(const struct path_node *node, enum weight weight)
{
	return node->weights[weight == WEIGHT_GPU_TIME ? WEIGHT_COUNT : weight] != 0;
}

/*
 * Stores the nodes from below the root down to node in *chain, an array for grow(). Returns their
 * number or -ENOMEM.
 */
int paths_chain(const struct paths *paths, uint32_t node, uint32_t **chain, size_t *capacity);

/* Returns the names of these nodes joined with ';'. The caller frees it. NULL if out of memory. */
char *paths_text(const struct paths *paths, uint32_t node, size_t *length_out);

#endif
