/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the tree of call paths from the sums by owner (aggregate.h).
 */
#ifndef XT_MERGE_BUILD_TREE_H
#define XT_MERGE_BUILD_TREE_H

#include <stdint.h>

#define PATH_GRAPH_MARK                                                                            \
	"[graph]" /* between the path of a graph launch and the path that created the node */
#define LEAF_KERNEL_MARK "[GPU_Kernel]" /* before the kernel name in a path */

struct names;
struct owner;
struct process;
struct reading;

/*
 * Adds the aggregate of a log to the tree run->paths, and passes it to the exporters. A path has
 * the frames of the stack, the API and the leaf. For graph work, the path that created the node
 * comes before the leaf.
 */
void build_tree(struct reading *reading);

/* Returns the last node of the path of an owner, created if needed. */
uint32_t build_tree_path(struct reading *reading, const struct owner *owner);

/* The same without the root that --by asks for, so that processes and devices share the path. */
uint32_t build_tree_common_path(struct reading *reading, const struct owner *owner);

/*
 * Returns the last frame of an owner's path, in process->names->shown, which `names` must be.
 * NAME_EMPTY: the path ends with the call.
 */
uint32_t leaf_frame(struct names *names, const struct process *process, const struct owner *owner);

/* Sanitises untrusted text. Returns a name in names. */
uint32_t clean_name(struct names *names, const char *text);

#endif
