/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call paths of a comparison as a tree with the times of both sides: what flame graphs and folded
 * stacks are made of. Numbers are for one iteration, or for a run, as those of the comparison.
 */
#ifndef XT_DIFF_FLAME_TREE_H
#define XT_DIFF_FLAME_TREE_H

#include "diff/compare/comparison.h"

enum flame_weight {
	FLAME_GPU_TIME,	 /* LEVEL_PATH */
	FLAME_CALL_TIME, /* LEVEL_CALL */
	FLAME_WEIGHTS
};

struct flame_node {
	const char *name;		    /* of its frame, as shown */
	uint32_t parent;		    /* place in the tree */
	uint32_t end;			    /* the place behind its subtree */
	uint32_t depth;			    /* 0: stands for all */
	double self[FLAME_WEIGHTS][SIDES];  /* of what ends in it, in ns */
	double total[FLAME_WEIGHTS][SIDES]; /* … with all below it */
};

/* Depth first, siblings by name; the first node stands for all. Names are the comparison's. */
struct flame_tree {
	struct flame_node *nodes;
	uint32_t count;
	/* By row of the comparison: the node in which it ends; 0: in none. */
	uint32_t *node_of_row;
};

/* 0 or -ENOMEM; flame_tree_free() in any case. */
int flame_tree_make(struct flame_tree *tree, const struct comparison *comparison);
void flame_tree_free(struct flame_tree *tree);

/*
 * The colour of a change, as CSS has it, in dark and in light surroundings alike legible: blue is less than
 * before, red is more, grey is alike. (src/report/src/colours.ts has the page's.)
 */
#define FLAME_COLOUR_BYTES 24
void flame_colour(char out[FLAME_COLOUR_BYTES], double base, double new);

#endif
