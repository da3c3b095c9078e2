/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations and launch shapes by kernel. Copies and memsets have durations only.
 *
 * Memory grows with the number of kernels and of launch shapes, not with the number of launches.
 * Kernels beyond KERNELS_MAX are left out: compare row->count with the count of the kernel.
 */
#ifndef XT_MERGE_KERNELS_H
#define XT_MERGE_KERNELS_H

#include "merge/sums/exporter.h"
#include "merge/sums/histogram.h"
#include "merge/sums/shapes.h"

struct launch;
struct work;

#define KERNELS_MAX (1u << 16) /* in one log, and in all */

/* A distinct launch shape of a kernel. */
struct kernel_shape {
	uint32_t row;
	struct shape shape; /* string and is_collective are unused */
	uint64_t count;
	struct occupancy occupancy; /* zeros: unknown, or it differs between devices */
};

struct kernel_row {
	uint32_t name; /* in paths, as in table_leaves() */
	uint64_t count;
	uint64_t total_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t launch_count;	/* kernels with a known launch of their own */
	uint64_t shorter_count; /* of these: shorter than the launch call */
	struct histogram durations;
	/* Set by kernels_finish(): */
	const struct kernel_shape *shape; /* the most frequent one; NULL: none */
	uint32_t shape_count;
};

/* Zeros are an empty one. Belongs to one thread. */
struct kernels {
	struct kernel_row *rows;
	size_t count;
	size_t capacity;
	uint32_t *places; /* row + 1 by name in paths; 0: none */
	size_t place_capacity;
	struct kernel_shape *shapes;
	size_t shape_count;
	size_t shape_capacity;
	struct xt_hash_table by_shape;

	/* State of the current log: */
	struct log_row *log_rows;
	size_t log_count;
	size_t log_capacity;
	struct log_shape *log_shapes; /* by XT_SHAPE_ID */
	size_t log_shape_capacity;
	uint32_t *log_places; /* log row + 1 by name in the model, then copy kinds, then memsets */
	size_t log_place_capacity;
	struct device_limits *limits; /* by device, below KERNELS_DEVICES_MAX */
	size_t limit_capacity;
};

#define KERNELS_DEVICES_MAX 64 /* occupancy on further devices is unknown */

/* The calls for a log follow each other. */
void kernels_begin_log(struct kernels *kernels, const struct process *process);
void kernels_add(struct kernels *kernels, const struct process *process, const struct work *work,
		 const struct launch *launch);
void kernels_end_log(struct kernels *kernels, const struct process *process);

struct pack;

/* Writes what was added since kernels_begin_log(), or reads it instead of kernels_add(). */
void kernels_pack(struct kernels *kernels, const struct process *process, struct pack *pack);

/* Sets the shapes of the rows. Call it after the last log, any number of times. */
void kernels_finish(struct kernels *kernels);

/* Returns the row of a leaf, or NULL. */
const struct kernel_row *kernels_find(const struct kernels *kernels, uint32_t name);

/* The duration that a half, or 99 %, of the kernels do not exceed. */
uint64_t kernel_p50_ns(const struct kernel_row *row);
uint64_t kernel_p99_ns(const struct kernel_row *row);

void kernels_free(struct kernels *kernels);

extern const struct exporter analysis_kernels;

#endif
