/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that several outputs show, worked out of what was read: rows in their order, the largest
 * first.
 *
 * Rows are given back with free(). All functions: 0 or -ENOMEM, then there are no rows.
 */
#ifndef XT_MERGE_TABLES_H
#define XT_MERGE_TABLES_H

#include "merge/exporter.h"

struct table_row {
	uint32_t id; /* path node, or name */
	uint64_t value;
	uint64_t count; /* of kernels, copies and sets */
};

struct table {
	struct table_row *rows;
	size_t count;
};

/* Call paths that carry the weight. */
int table_paths(struct table *table, const struct paths *paths, enum weight weight);

/* What paths end in, by name: GPU time of kernels, copies and sets. */
int table_leaves(struct table *table, const struct paths *paths);

/* NVTX ranges (nodes of run->ranges) that were opened or in which work was asked for. A range takes
 * as much as those in it at least: it stands before them. */
int table_ranges(struct table *table, const struct run *run);

void table_free(struct table *table);

/* What a leaf of GPU time is. */
enum work_kind leaf_kind(const char *name, size_t length);

/* "kernel", "collective", "copy" or "set". */
const char *leaf_kind_name(const char *name, size_t length);

/* Its name without LEAF_KERNEL_MARK, which only kernels have. */
const char *leaf_name(const struct paths *paths, uint32_t name, size_t *length_out);

/* The sum of a weight. */
uint64_t table_sum(const struct paths *paths, enum weight weight);

#endif
