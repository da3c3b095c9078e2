/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call paths of a comparison as a tree with the times of both sides, for flame graphs and
 * folded stacks. Times are per iteration or per run, as in the comparison.
 */
#ifndef XT_DIFF_FLAME_TREE_H
#define XT_DIFF_FLAME_TREE_H

#include "diff/compare/comparison.h"

enum flame_weight {
	FLAME_GPU_TIME,	 /* of LEVEL_PATH */
	FLAME_CALL_TIME, /* of LEVEL_CALL */
	FLAME_WEIGHTS
};

struct flame_node {
	const char *name; /* frame for display */
	uint32_t parent;  /* index in the tree */
	uint32_t end;	  /* index after the last node of its subtree */
	uint32_t depth;	  /* 0: the root */

	double self[FLAME_WEIGHTS][SIDES];  /* of paths that end here, in ns */
	double total[FLAME_WEIGHTS][SIDES]; /* including all nodes below */
};

/* Depth first, siblings by name. The first node is the root. The comparison owns the names. */
struct flame_tree {
	struct flame_node *nodes;
	uint32_t count;
	/* By row of the comparison: the node in which its path ends; 0: none. */
	uint32_t *node_of_row;
};

/* Free it with flame_tree_free(). */
void flame_tree_make(struct flame_tree *tree, const struct comparison *comparison);
void flame_tree_free(struct flame_tree *tree);

#endif
