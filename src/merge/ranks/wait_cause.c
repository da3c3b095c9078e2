/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/wait_cause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idle/idle.h"
#include "merge/naming/paths.h"
#include "merge/read/collectives.h"
#include "merge/sums/build_tree.h"

static const struct {
	const char *beginning; /* of the last frame of a path */
	const char *kind;
	const char *what; /* the rank needs longer for it */
} leaves[] = {
	{LEAF_KERNEL_MARK, "kernel", "a kernel of this line takes longer"},
	{"[GPU_Memcpy", "copy", "a copy of this line takes longer"},
	{"[GPU_Memset", "memset", "a memset of this line takes longer"},
	{"[idle:", "idle", "the GPU waits longer before the work of this line"},
};

static const char *name_of(const struct paths *paths, uint32_t node)
{
	return names_text(&paths->names, paths->nodes[node].name, NULL);
}

/* Returns the index in leaves, or -1. name_out: NULL, or gets the name of that frame. */
static int leaf_of(const struct paths *paths, uint32_t node, const char **name_out)
{
	/* The activity of the CPU is below the frame of idle time, so go up to that frame. */
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		const char *name = name_of(paths, node);

		if (name_out)
			*name_out = name;
		for (size_t l = 0; l < sizeof(leaves) / sizeof(leaves[0]); l++)
			if (!strncmp(name, leaves[l].beginning, strlen(leaves[l].beginning)))
				return (int)l;
	}
	return -1;
}

bool wait_cause_is_launch_late(const struct paths *paths, uint32_t node)
{
	const char *name;

	return leaf_of(paths, node, &name) >= 0 && !strcmp(name, idle_labels[IDLE_LAUNCH_LATE]);
}

bool wait_cause_is_transfer(const struct paths *paths, uint32_t node)
{
	const char *name = name_of(paths, node);
	size_t mark = strlen(LEAF_KERNEL_MARK);

	/* The time of a send or receive is mostly a wait for its peer. */
	return node != PATH_ROOT && !strncmp(name, LEAF_KERNEL_MARK, mark) &&
	       is_collective_kernel(name + mark, strlen(name + mark)) &&
	       collective_needs_all(collective_operation(name + mark, strlen(name + mark)));
}

bool wait_cause_is_kernel(const struct paths *paths, uint32_t node)
{
	return leaf_of(paths, node, NULL) == 0 && !wait_cause_is_transfer(paths, node);
}

const char *wait_cause_kind(const struct paths *paths, uint32_t node)
{
	int leaf = leaf_of(paths, node, NULL);

	if (wait_cause_is_transfer(paths, node))
		return "collective";
	return leaf < 0 ? "unknown" : leaves[leaf].kind;
}

uint32_t wait_cause_frame(const struct paths *paths, uint32_t node)
{
	uint32_t innermost = NAME_EMPTY;

	for (uint32_t n = node; n != PATH_ROOT; n = paths->nodes[n].parent) {
		uint32_t name = paths->nodes[n].name;

		if (paths_is_user_frame(paths, name))
			return name;
		if (innermost == NAME_EMPTY && name_of(paths, n)[0] != '[')
			innermost = name;
	}
	return innermost;
}

char *wait_cause_where(const struct paths *paths, uint32_t node)
{
	return paths_frame_where(paths, wait_cause_frame(paths, node));
}

const char *wait_cause_what(const struct paths *paths, uint32_t node)
{
	int leaf = leaf_of(paths, node, NULL);

	return leaf < 0 ? "" : leaves[leaf].what;
}
