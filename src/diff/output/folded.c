/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential folded stacks: "frame;frame;kernel 120 130", with the GPU time of base and new in
 * ns. The format is that of difffolded.pl, which flamegraph.pl reads.
 */
#include <math.h>
#include <stdlib.h>
#include <errno.h>

#include "base/memory.h"
#include "diff/output/diff_output.h"
#include "diff/output/flame_tree.h"

/* Replaces ';' and newlines, which separate frames and paths. */
static void put_frame(FILE *out, const char *frame)
{
	for (; *frame; frame++)
		fputc(*frame == ';' ? ':' : *frame == '\n' ? ' ' : *frame, out);
}

static int write_folded(FILE *out, const struct diff_result *result)
{
	struct flame_tree tree;
	uint32_t *chain;

	if (!result->comparison)
		return -ENODATA;
	flame_tree_make(&tree, result->comparison);
	chain = xt_calloc(tree.count + 1, sizeof(*chain));
	for (uint32_t n = 1; n < tree.count; n++) {
		const struct flame_node *node = &tree.nodes[n];
		double base = round(node->self[FLAME_GPU_TIME][SIDE_BASE]);
		double new = round(node->self[FLAME_GPU_TIME][SIDE_NEW]);

		if (base == 0 && new == 0)
			continue;
		for (uint32_t m = n; m; m = tree.nodes[m].parent)
			chain[tree.nodes[m].depth] = m;
		for (uint32_t d = 1; d <= node->depth; d++) {
			put_frame(out, tree.nodes[chain[d]].name);
			fputc(d < node->depth ? ';' : ' ', out);
		}
		fprintf(out, "%.0f %.0f\n", base, new);
	}
	free(chain);
	flame_tree_free(&tree);
	return 0;
}

const struct diff_output diff_output_folded = {
	.name = "folded",
	.what = "Write folded stacks with the GPU time of both sides, as difffolded.pl does",
	.value = "FILE",
	.write = write_folded,
};
