/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of the SVG exporter: where frames stand.
 */
#ifndef XT_MERGE_SVG_FLAME_H
#define XT_MERGE_SVG_FLAME_H

#include "merge/exporter.h"

/* A frame of the flame graph: all paths through it are one. */
struct flame_frame {
	uint32_t node;	/* in paths; PATH_ROOT: everything */
	uint32_t depth; /* 0: everything */
	uint64_t start; /* of the weight, from the left */
	uint64_t value; /* with all that is above it */
};

struct flame {
	struct flame_frame *frames; /* callers before callees, siblings by name */
	size_t count;
	uint32_t depth; /* of the deepest, that are wide enough */
};

/*
 * Lays out the paths by that weight; frames of less than a part of min_parts of the whole are left
 * out, with all above them. flame_free() in any case. 0 or -ENOMEM.
 */
int flame_build(struct flame *flame, const struct paths *paths, enum weight weight,
		uint64_t min_parts);
void flame_free(struct flame *flame);

#endif
