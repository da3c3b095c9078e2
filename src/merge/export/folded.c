/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes folded stacks: one line per call path, "frame;frame;kernel 12".
 *
 * The lines add up to the total. With --unit us, the rounding error of a line is carried to the
 * next, so that the sum is off by less than one microsecond.
 */

#include "base/text.h"
#include "merge/export/formats.h"
#include "merge/sums/run.h"

static uint64_t weigh(const struct settings *settings, const struct path_node *node,
		      uint64_t *carried_ns)
{
	uint64_t weight = node->weights[settings->weight];

	if (settings->unit == UNIT_NS || !weight_specs[settings->weight].is_time)
		return weight;
	*carried_ns += weight % 1000;
	weight /= 1000;
	if (*carried_ns >= 1000) {
		*carried_ns -= 1000;
		weight++;
	}
	return weight;
}

static void folded_end(struct sink *sink, const struct run *run)
{
	const struct paths *paths = &run->paths;
	uint32_t *chain = NULL, leaf_count;
	uint32_t *leaves = paths_leaves(paths, sink->settings->weight, &leaf_count);
	uint64_t carried_ns = 0;
	size_t capacity = 0;

	for (uint32_t i = 0; i < leaf_count; i++) {
		const struct path_node *leaf = &paths->nodes[leaves[i]];
		uint64_t weight = weigh(sink->settings, leaf, &carried_ns);
		int depth = paths_chain(paths, leaves[i], &chain, &capacity);
		char *p;

		for (int d = 0; d < depth; d++) {
			size_t length;
			const char *name =
				names_text(&paths->names, paths->nodes[chain[d]].name, &length);

			output_text(&sink->out, name, length);
			output_text(&sink->out, d + 1 < depth ? ";" : " ", 1);
		}
		p = output_room(&sink->out, TEXT_U64_BYTES_MAX + 1);
		p = text_u64(p, weight);
		*p++ = '\n';
		output_advance(&sink->out, p);
	}
	free_all(chain, leaves);
}

const struct exporter exporter_folded = {
	.name = "folded",
	.what = "Write folded stacks weighted by GPU time, for flamegraph.pl and inferno",
	.uses = USES_PATHS | USES_WEIGHT | USES_UNIT,
	.end = folded_end,
};
