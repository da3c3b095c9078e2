/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that several outputs show, sorted by size, largest first.
 * Free the rows with table_free().
 */
#ifndef XT_MERGE_PATH_TABLES_H
#define XT_MERGE_PATH_TABLES_H

#include "merge/read/correlate.h"
#include "merge/tables/table.h"

struct run;

struct table_row {
	uint32_t id; /* path node, or name */
	uint64_t value;
	uint64_t count; /* kernels, copies and memsets */
};

struct table {
	struct table_row *rows;
	size_t count;
};

/* Call paths with a nonzero weight. */
void table_paths(struct table *table, const struct paths *paths, enum weight weight);

/* GPU time of kernels, copies and memsets by name. */
void table_leaves(struct table *table, const struct paths *paths);

/*
 * NVTX ranges (nodes of sums->ranges.tree) that were opened or in which work was submitted. An
 * outer range takes at least as much time as those in it and comes before them.
 */
void table_ranges(struct table *table, const struct run *run);

void table_free(struct table *table);

/* For open(): the rows of a definition are those of the table, which is empty afterwards. */
void table_give(struct table *table, struct table_rows *rows);

/*
 * The innermost frame of a path with one of these marks (enum frame_mark). NAME_EMPTY if there is
 * none. Skips the host function that nvcc generates with the name of the kernel.
 */
uint32_t path_own_frame(const struct paths *paths, uint32_t node, unsigned marks);

/*
 * The node of the idle class on a path of idle time, which may have CPU frames below it. PATH_ROOT
 * if there is none.
 */
uint32_t path_of_idle_class(const struct paths *paths, uint32_t node);

/* Sum of a weight over all paths. */
uint64_t table_sum(const struct paths *paths, enum weight weight);

#endif
