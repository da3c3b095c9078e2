/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the tree of NVTX ranges, and names ranges and categories.
 */
#ifndef XT_MERGE_BUILD_TREE_RANGES_H
#define XT_MERGE_BUILD_TREE_RANGES_H

#include <stdint.h>

struct aggregate;
struct model;
struct names;
struct process;
struct run;

/* Sums the GPU time of each NVTX range, including nested ranges, in run->sums->ranges.tree. */
void build_range_tree(struct run *run, const struct process *process,
		      const struct aggregate *aggregate);

/* Returns the sanitised "text" or "domain:text" as a name in names. */
uint32_t range_label(struct names *names, const struct model *model, uint32_t domain, uint32_t text,
		     const char *before, const char *after);

/* Returns the name of a category of a domain, or its number, as a name in names. */
uint32_t range_category(struct names *names, const struct model *model, uint32_t domain,
			uint32_t category);

#endif
