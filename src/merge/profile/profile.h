/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run profile: the data of a run that is kept to compare it with others. A subject is something
 * with a sum in each batch of iterations: a call path, a kernel or a kind of idle time.
 */
#ifndef XT_MERGE_PROFILE_H
#define XT_MERGE_PROFILE_H

#include "log/base/hash_table.h"
#include "merge/profile/profile_windows.h"
#include "merge/sums/exporter.h"

#define PROFILE_VERSION 2 /* docs/DIFF.md says which changes keep it */

/*
 * In the order of the document. The id of all levels other than PROFILE_TOTAL, PROFILE_PATH and
 * PROFILE_CALL is a name in the tree.
 */
enum profile_level {
	PROFILE_TOTAL,	/* id: enum profile_total */
	PROFILE_IDLE,	/* GPU idle time by cause */
	PROFILE_COPY,	/* GPU time of copies by direction, and of memsets */
	PROFILE_BYTES,	/* bytes of the same */
	PROFILE_MEMORY, /* peak memory of each device */
	PROFILE_RANGE,	/* GPU time of calls made in an NVTX range: "outer;inner" */
	PROFILE_SPAN,	/* time threads spent in an NVTX range */
	PROFILE_KERNEL, /* GPU time */
	PROFILE_API,	/* CPU time of calls by function */
	PROFILE_PATH,	/* GPU time by call path; id: node in the tree */
	PROFILE_CALL, /* CPU time of waits, allocations and frees by call path; id: node in the tree */
	PROFILE_LEVELS
};

enum profile_total {
	TOTAL_GPU_TIME,
	TOTAL_GPU_BUSY,
	TOTAL_GPU_IDLE,
	TOTAL_WALL,
	TOTAL_LAUNCHES, /* value and count are equal */
	TOTAL_COPIES,
	TOTAL_BYTES,
	TOTAL_WAITS,
	TOTAL_LATENCY, /* from the call to the start of its kernel */
	TOTAL_PEAK_MEMORY,
	PROFILE_TOTALS
};

struct subject {
	enum profile_level level;
	uint32_t id;
	double whole_value, whole_count; /* of the whole run, including time outside iterations */
	double values[PROFILE_BATCHES];	 /* by batch, per iteration */
	double counts[PROFILE_BATCHES];
};

/* Zeros are empty. */
struct subjects {
	struct subject *list;
	size_t count;
	size_t capacity;
	struct interner ids; /* of level and id */
};

/* Index of a subject in the list, which is added if needed. */
uint32_t subjects_index(struct subjects *subjects, enum profile_level level, uint32_t id);
void subjects_free(struct subjects *subjects);

/*
 * Adds to a subject. share is 1 / number of iterations in the batch. batch is -1 outside the
 * iterations.
 */
void subject_add(struct subject *subject, int batch, double share, double value, double count);

/* A quantity per iteration. Unknown values are NAN. */
struct profile_stat {
	double mean;
	double typical;	 /* mean after outliers are clamped; the value that runs are compared by */
	double error;	 /* standard error of typical, including autocorrelation */
	double residual; /* standard error without the variation common to all paths */
};

struct profile_stats {
	struct profile_stat value;
	struct profile_stat count;
	struct profile_stat each; /* value per item */
};

/*
 * Computes the common factor of each batch: the median, weighted by time, of the relative time per
 * item of all paths. The array factors holds PROFILE_BATCHES values.
 */
void profile_factors(const struct subjects *subjects, uint32_t batch_count, double *factors);
struct profile_stats profile_stats(const struct subject *subject, uint32_t batch_count,
				   const double *factors);

extern const struct exporter exporter_profile;

#endif
