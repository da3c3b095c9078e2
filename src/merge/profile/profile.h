/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run profile: the data of a run that is kept to compare it with others. A subject is something
 * with a sum in each batch of iterations: a call path, a kernel or a kind of idle time.
 */
#ifndef XT_MERGE_PROFILE_H
#define XT_MERGE_PROFILE_H

#include "log/base/hash_table.h"
#include "merge/read/iterations.h"
#include "merge/sums/exporter.h"

#define PROFILE_VERSION 2 /* docs/DIFF.md says which changes keep it */
#define PROFILE_BATCHES 32

/*
 * Levels in the order of the document, by their name there: X(level, name). The id of a subject is
 * an enum profile_total, a node in the tree (PATH, CALL), or a name in it. Of other levels:
 *
 * - IDLE: GPU idle time by cause. COPY: GPU time of copies by direction, and of memsets. BYTES: the
 *   same in bytes. MEMORY: peak memory of each device
 * - RANGE: GPU time of calls made in an NVTX range, "outer;inner". SPAN: time of threads in it
 * - KERNEL, PATH: GPU time. API: CPU time of calls. CALL: CPU time of waits, allocations and frees
 */
#define PROFILE_LEVEL_LIST(X)                                                                      \
	X(TOTAL, "totals")                                                                         \
	X(IDLE, "idle")                                                                            \
	X(COPY, "copies")                                                                          \
	X(BYTES, "bytes")                                                                          \
	X(MEMORY, "memory")                                                                        \
	X(RANGE, "ranges")                                                                         \
	X(SPAN, "spans")                                                                           \
	X(KERNEL, "kernels")                                                                       \
	X(API, "apis")                                                                             \
	X(PATH, "paths")                                                                           \
	X(CALL, "calls")

/* Value and count of LAUNCHES are equal. LATENCY is from the call to the start of its kernel. */
#define PROFILE_TOTAL_LIST(X)                                                                      \
	X(GPU_TIME, "gpu-time")                                                                    \
	X(GPU_BUSY, "gpu-busy")                                                                    \
	X(GPU_IDLE, "gpu-idle")                                                                    \
	X(WALL, "wall")                                                                            \
	X(LAUNCHES, "launches")                                                                    \
	X(COPIES, "copies")                                                                        \
	X(BYTES, "bytes")                                                                          \
	X(WAITS, "waits")                                                                          \
	X(LATENCY, "launch-latency")                                                               \
	X(PEAK_MEMORY, "peak-memory")

#define PROFILE_LEVEL_ID(level, name) PROFILE_##level,
#define PROFILE_TOTAL_ID(total, name) TOTAL_##total,
enum profile_level { PROFILE_LEVEL_LIST(PROFILE_LEVEL_ID) PROFILE_LEVELS };
enum profile_total { PROFILE_TOTAL_LIST(PROFILE_TOTAL_ID) PROFILE_TOTALS };

struct subject {
	enum profile_level level;
	uint32_t id;
	double whole_value, whole_count; /* of the whole run, including time outside iterations */
	double values[PROFILE_BATCHES];	 /* by batch, per iteration */
	double counts[PROFILE_BATCHES];
};

/* Zeros are empty. */
struct subjects {
	LIST(struct subject);
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

/*
 * The batches of a process: equal numbers of iterations, or slices of the run if it has none.
 * docs/internals/DIFF_METHOD.md explains why batches are used.
 */
struct windows {
	enum iterations_source source;
	const char *name;    /* as in the iterations */
	uint64_t *starts_ns; /* found_count start times, ascending; owned */
	uint64_t end_ns;
	size_t found_count;
	size_t warmup_count;		   /* leading iterations to ignore */
	size_t used_count;		   /* iterations after the warm-up, or slices */
	uint32_t batch_count;		   /* batches of used iterations, at most PROFILE_BATCHES */
	uint32_t lengths[PROFILE_BATCHES]; /* number of iterations in each batch */
	size_t recent;			   /* iteration of the last lookup */
};

/* Divides iterations into batches. Free it with windows_free(). */
void windows_make(struct windows *windows, const struct iterations *iterations);

/* The end of an iteration. */
uint64_t windows_end_ns(const struct windows *windows, size_t iteration);

/* The batch at this time, or -1 during warm-up and outside the iterations. */
int windows_batch(struct windows *windows, uint64_t time_ns);

void windows_free(struct windows *windows);

extern const struct exporter exporter_profile;

#endif
