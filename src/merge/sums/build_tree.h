/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the tree of call paths from the sums by owner (aggregate.h).
 */
#ifndef XT_MERGE_BUILD_TREE_H
#define XT_MERGE_BUILD_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "merge/read/correlate.h"

struct aggregate;
struct model;
struct names;
struct owner;
struct paths;
struct process;
struct reading;
struct run;

#define PATH_GRAPH_MARK                                                                            \
	"[graph]" /* between the path of a graph launch and the path that created the node */
#define LEAF_KERNEL_MARK "[GPU_Kernel]" /* before the kernel name in a path */

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

/* The kind of a leaf with GPU time. */
enum work_kind leaf_kind(const char *name, size_t length);

/* "kernel", "collective", "copy" or "set". */
const char *leaf_kind_name(const char *name, size_t length);

/* The name without LEAF_KERNEL_MARK. */
const char *leaf_name(const struct paths *paths, uint32_t name, size_t *length_out);

/* Sanitises untrusted text. Returns a name in names. */
uint32_t clean_name(struct names *names, const char *text);

/* Sums the GPU time of each NVTX range, including nested ranges, in run->sums->ranges.tree. */
void build_range_tree(struct run *run, const struct process *process,
		      const struct aggregate *aggregate);

/* Returns the sanitised "text" or "domain:text" as a name in names. */
uint32_t range_label(struct names *names, const struct model *model, uint32_t domain, uint32_t text,
		     const char *before, const char *after);

/* Returns the name of a category of a domain, or its number, as a name in names. */
uint32_t range_category(struct names *names, const struct model *model, uint32_t domain,
			uint32_t category);

/*
 * How much the GPU time of a call path differs between the logs of several ranks.
 *
 * The logs come one after the other, so a few numbers per path are enough. Collectives are left
 * out: their time is mostly a wait for others.
 */

/* The GPU time of a path in the logs that have it. */
struct path_spread {
	uint64_t sum_ns, max_ns, min_ns;
	uint64_t open_ns;  /* of the log that is being added */
	uint32_t open_log; /* index in the inputs, from 1; 0: none */
	uint32_t max_log;  /* index in the inputs */
	uint32_t count;	   /* logs that have the path */
};

/* Zeros are an empty list. */
struct rank_spread {
	BY_ID(struct path_spread); /* by node in run->paths */
	uint32_t *rows;		   /* nodes whose time differs, the largest difference first */
	size_t row_count;
};

/* The mean of the logs that have a path. */
static inline uint64_t path_spread_mean_ns(const struct path_spread *path)
{
	return path->count ? path->sum_ns / path->count : 0;
}

/* Fills in the rows of the spread, when all logs were added. */
void rank_spread_finish(struct rank_spread *spread, const struct paths *paths);
void rank_spread_free(struct rank_spread *spread);

#endif
