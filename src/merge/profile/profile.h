/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the run profile: what is kept of a run to compare it with others. A subject is something
 * that has a sum in each batch of iterations: a call path, a kernel, a kind of idle time.
 */
#ifndef XT_MERGE_PROFILE_H
#define XT_MERGE_PROFILE_H

#include "log/base/hash_table.h"
#include "merge/base/json.h"
#include "merge/exporter.h"
#include "merge/sums/idle.h"

#define PROFILE_VERSION 1 /* docs/DIFF.md: what may change without it */

/* In the order of the document. */
enum profile_level {
	PROFILE_TOTAL,	/* id: enum profile_total */
	PROFILE_IDLE,	/* the rest: name in the tree */
	PROFILE_COPY,	/* GPU time of copies by direction, and of sets */
	PROFILE_BYTES,	/* … and their bytes */
	PROFILE_MEMORY, /* the peak of each device */
	PROFILE_RANGE,	/* GPU time of what was called in an NVTX range: "outer;inner" */
	PROFILE_SPAN,	/* time spent in it */
	PROFILE_KERNEL, /* GPU time */
	PROFILE_API,	/* CPU time of calls by function */
	PROFILE_PATH,	/* GPU time by call path; id: node in the tree */
	PROFILE_CALL,	/* CPU time of calls that wait, allocate or free, by call path; likewise */
	PROFILE_LEVELS
};

enum profile_total {
	TOTAL_GPU_TIME,
	TOTAL_GPU_BUSY,
	TOTAL_GPU_IDLE,
	TOTAL_WALL,
	TOTAL_LAUNCHES, /* value and count alike */
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
	double whole_value, whole_count; /* of all of the run, iterations or not */
	double values[PROFILE_BATCHES];	 /* by batch, for one iteration */
	double counts[PROFILE_BATCHES];
};

/* All zeros is an empty one. */
struct subjects {
	struct subject *list;
	size_t count;
	size_t capacity;
	struct xt_hash_table table;
};

/* The place of a subject in the list, made if need be; UINT32_MAX if memory ran out. */
uint32_t subjects_index(struct subjects *subjects, enum profile_level level, uint32_t id);
void subjects_free(struct subjects *subjects);

/* Adds to it; batch -1 is outside the iterations. share is 1 / the iterations in a batch. */
void subject_add(struct subject *subject, int batch, double share, double value, double count);

/* Of a quantity for one iteration. What is not known is NAN. */
struct profile_stat {
	double mean;
	double typical;	 /* the mean without what is far out: what runs are compared by */
	double error;	 /* standard error of it, autocorrelation respected */
	double residual; /* the same, once what all paths have in common is taken away */
};

struct profile_stats {
	struct profile_stat value;
	struct profile_stat count;
	struct profile_stat each; /* value for one piece */
};

/*
 * The common factor of each batch: the median, weighted by time, of what each path's pieces lasted against
 * their mean. factors: PROFILE_BATCHES of them. 0 or -ENOMEM.
 */
int profile_factors(const struct subjects *subjects, uint32_t batch_count, double *factors);
struct profile_stats profile_stats(const struct subject *subject, uint32_t batch_count,
				   const double *factors);

/* Of a process, for the document. */
struct profile_process {
	char *name, *command, *driver, *cupti; /* owned, as all texts here */
	char *host;
	uint64_t start_realtime_ns;
	enum windows_source source;
	char *iteration;
	size_t found_count, warmup_count, used_count;
	uint32_t batch_count;
};

struct profile_device {
	uint32_t number;
	char *name, *uuid;
};

struct profile {
	struct paths
		tree; /* of call paths, without lines for processes; its names are those of all */
	struct subjects subjects;
	struct profile_process *processes;
	size_t process_count, process_capacity;
	struct profile_device *devices;
	size_t device_count, device_capacity;
	uint32_t batch_count; /* of the run; 0: not known yet */
	bool is_mixed;	      /* processes differ in it: nothing is known by batch */
	/* Of the process at hand: */
	struct windows windows;
	double shares[PROFILE_BATCHES];
	struct cell {
		uint64_t value, count;
	} * cells; /* by total and batch, the last being outside */
	size_t cell_capacity;
	struct call_place {
		uint32_t api_subject;  /* … + 1; 0: not known yet */
		uint32_t path_subject; /* likewise; 0: not shown */
		uint16_t api;
	} * call_places;	/* by XT_STACK_ID, 0 being calls without a stack */
	uint32_t *copy_places;	/* by kind of copy, the last being sets: subject + 1 … */
	uint32_t *bytes_places; /* … and that of their bytes */
	uint32_t totals[PROFILE_TOTALS];
	uint32_t idle[IDLE_CLASSES];
	uint64_t *busy_until_ns; /* by device */
	uint8_t *waits;		 /* by place in the model's apis: does the CPU wait in it? */
	bool lacks_iterations;	 /* of a log: the range that was asked for is not there */
	bool has_iterations;	 /* of another one: it is */
};

/* Writes the document. 0 or -ENOMEM. */
int profile_put(struct json *json, struct profile *profile, const struct run *run);

#endif
