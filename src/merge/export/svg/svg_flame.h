/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout of the SVG flame graph.
 */
#ifndef XT_MERGE_SVG_FLAME_H
#define XT_MERGE_SVG_FLAME_H

#include "merge/exporter.h"

/* A frame of the flame graph: all paths through it, merged. */
struct flame_frame {
	uint32_t node;	/* in paths; PATH_ROOT: all */
	uint32_t depth; /* 0: the root frame */
	uint64_t start; /* offset from the left, in units of the weight */
	uint64_t value; /* including descendants */
};

struct flame {
	struct flame_frame *frames; /* callers before callees, siblings by name */
	size_t count;
	uint32_t depth; /* of the deepest frame kept */
};

/*
 * Lays out the paths by a weight. Omits frames below 1/min_parts of the total, with their
 * descendants. Free the result with flame_free().
 */
void flame_build(struct flame *flame, const struct paths *paths, enum weight weight,
		 uint64_t min_parts);
void flame_free(struct flame *flame);

#endif
