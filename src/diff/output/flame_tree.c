/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sort rows by their frames. Paths with a common prefix are then adjacent, and the tree is in
 * depth-first order.
 */
#include "diff/output/flame_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/compare/comparison.h"

struct path {
	const struct profile_entry *entry;
	size_t row;
	enum flame_weight weight;
};

static int compare_paths(const void *a, const void *b)
{
	const struct profile_entry *x = ((const struct path *)a)->entry;
	const struct profile_entry *y = ((const struct path *)b)->entry;

	for (uint32_t f = 0; f < x->frame_count && f < y->frame_count; f++) {
		int order = strcmp(x->frames[f], y->frames[f]);

		if (order)
			return order;
	}
	if (x->frame_count != y->frame_count)
		return x->frame_count < y->frame_count ? -1 : 1;
	return ((const struct path *)a)->row < ((const struct path *)b)->row ? -1 : 1;
}

/*
 * Adds the frames that the path does not share with the previous path. Returns the node of the last
 * frame.
 */
static uint32_t insert_path(struct flame_tree *tree, uint32_t last,
			    const struct profile_entry *entry)
{
	uint32_t shared = 0, node = 0;
	uint32_t chain = last;

	/* Find the last node of the previous path that this path shares. */
	while (tree->nodes[chain].depth > entry->frame_count)
		chain = tree->nodes[chain].parent;
	for (uint32_t n = chain; n; n = tree->nodes[n].parent)
		if (strcmp(tree->nodes[n].name, entry->frames[tree->nodes[n].depth - 1]))
			chain = tree->nodes[n].parent;
	node = chain;
	shared = tree->nodes[chain].depth;
	for (uint32_t f = shared; f < entry->frame_count; f++) {
		tree->nodes[tree->count] = (struct flame_node){
			.name = entry->frames[f], .parent = node, .depth = f + 1};
		node = tree->count++;
	}
	return node;
}

static double known(double value)
{
	return isfinite(value) && value > 0 ? value : 0;
}

static void sum_subtrees(struct flame_tree *tree)
{
	for (uint32_t n = 0; n < tree->count; n++) {
		memcpy(tree->nodes[n].total, tree->nodes[n].self, sizeof(tree->nodes[n].total));
		tree->nodes[n].end = n + 1;
	}
	for (uint32_t n = tree->count; n-- > 1;) {
		struct flame_node *node = &tree->nodes[n], *parent = &tree->nodes[node->parent];

		for (int w = 0; w < FLAME_WEIGHTS; w++)
			for (int s = 0; s < SIDES; s++)
				parent->total[w][s] += node->total[w][s];
		if (node->end > parent->end)
			parent->end = node->end;
	}
}

void flame_tree_make(struct flame_tree *tree, const struct comparison *comparison)
{
	static const enum level levels[FLAME_WEIGHTS] = {LEVEL_PATH, LEVEL_CALL};
	struct path *paths = xt_calloc(comparison->row_count + 1, sizeof(*paths));
	size_t count = 0, frame_count = 1;
	uint32_t node = 0;

	*tree = (struct flame_tree){
		.node_of_row = xt_calloc(comparison->row_count + 1, sizeof(*tree->node_of_row))};
	for (int w = 0; w < FLAME_WEIGHTS; w++) {
		size_t end = comparison->first_rows[levels[w] + 1];

		for (size_t r = comparison->first_rows[levels[w]]; r < end; r++) {
			const struct profile_entry *entry = change_entry(&comparison->rows[r]);

			paths[count++] = (struct path){entry, r, (enum flame_weight)w};
			frame_count += entry->frame_count;
		}
	}
	tree->nodes = xt_calloc(frame_count, sizeof(*tree->nodes));
	tree->nodes[tree->count++].name = "all";
	qsort(paths, count, sizeof(*paths), compare_paths);
	for (size_t p = 0; p < count; p++) {
		const struct effect *effect = &comparison->rows[paths[p].row].effects[METRIC_VALUE];

		node = insert_path(tree, node, paths[p].entry);
		tree->node_of_row[paths[p].row] = node;
		tree->nodes[node].self[paths[p].weight][SIDE_BASE] += known(effect->base);
		tree->nodes[node].self[paths[p].weight][SIDE_NEW] += known(effect->new);
	}
	sum_subtrees(tree);
	free(paths);
}

void flame_tree_free(struct flame_tree *tree)
{
	free(tree->nodes);
	free(tree->node_of_row);
	*tree = (struct flame_tree){0};
}
