/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs are compared in: levels, from the whole run down to call paths, and the three quantities that a
 * thing has on each of them.
 */
#ifndef XT_DIFF_LEVEL_H
#define XT_DIFF_LEVEL_H

#include <stdbool.h>

/* In the order in which they are shown. */
enum level {
	LEVEL_TOTAL,  /* gpu-time, wall, launches, … by name */
	LEVEL_IDLE,   /* idle time of the GPU by class */
	LEVEL_COPY,   /* GPU time of copies by direction, and of sets */
	LEVEL_BYTES,  /* … and their bytes */
	LEVEL_MEMORY, /* peak by device */
	LEVEL_RANGE,  /* GPU time of what was called in an NVTX range */
	LEVEL_SPAN,   /* time spent in it */
	LEVEL_KERNEL, /* GPU time */
	LEVEL_API,    /* CPU time in calls by function */
	LEVEL_PATH,   /* GPU time by call path */
	LEVEL_CALL,   /* CPU time by call path, of calls that wait, allocate or free */
	LEVELS
};

enum unit { UNIT_NS, UNIT_BYTES, UNIT_COUNT };

struct level_spec {
	const char *document; /* member of a profile */
	const char *word;     /* in rules and in --json */
	const char *title;    /* of its table */
	enum unit unit;	      /* of its value; LEVEL_TOTAL: by row, see total_unit() */
	bool is_gpu_time;     /* faster and slower with the GPU's clock */
	bool has_frames;      /* is of call paths; else of one name */
};
extern const struct level_spec level_specs[LEVELS];

/* What is compared of a thing, for one iteration (of runs without iterations: for a run). */
enum metric {
	METRIC_VALUE, /* its time or bytes in all … */
	METRIC_COUNT, /* … how many pieces it has … */
	METRIC_EACH,  /* … and what one of them takes */
	METRICS
};

/* The unit of a row of LEVEL_TOTAL, by its name. */
enum unit total_unit(const char *name);

#endif
