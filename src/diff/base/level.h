/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels, from the whole run down to call paths, the three metrics of each row of a level, and
 * their numbers as text for people.
 */
#ifndef XT_DIFF_LEVEL_H
#define XT_DIFF_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

/* In display order. */
enum level {
	LEVEL_TOTAL, /* by name: gpu-time, wall, launches … */
	LEVEL_IDLE,
	LEVEL_COPY, /* GPU time of copies by direction, and of memsets */
	LEVEL_BYTES,
	LEVEL_MEMORY, /* peak */
	LEVEL_RANGE,  /* GPU time of the work launched in an NVTX range */
	LEVEL_SPAN,   /* wall time of an NVTX range */
	LEVEL_KERNEL,
	LEVEL_API,
	LEVEL_PATH, /* GPU time by call path */
	LEVEL_CALL, /* CPU time by call path of calls that wait, allocate or free */
	LEVELS
};

enum unit { UNIT_NS, UNIT_BYTES, UNIT_COUNT };

struct level_spec {
	const char *document; /* member of a run profile */
	const char *word;     /* name in rules and JSON */
	const char *title;    /* heading of its table */
	/* of the value; see level_unit() for LEVEL_TOTAL */
	enum unit unit;
	bool is_gpu_time; /* scales with the GPU clock */
	bool has_frames;  /* rows are call paths, not single names */
};
extern const struct level_spec level_specs[LEVELS];

/* Metrics are per iteration, or per run if runs have no iterations. */
enum metric {
	METRIC_VALUE, /* total time or bytes */
	METRIC_COUNT, /* number of items: launches, copies, calls */
	METRIC_EACH,  /* time or bytes per item */
	METRICS
};

/* The rows of LEVEL_TOTAL that rules name and outputs show, in this order. */
extern const struct total_spec {
	const char *name;
	enum unit unit;
	enum metric metric; /* of a rule that names none */
	bool is_of_run;	    /* of a run, not a sum over its iterations */
} total_specs[];
extern const size_t total_count;

/* Is the value that of a run, not a sum over its iterations? name: of a row of LEVEL_TOTAL. */
bool level_is_of_run(enum level level, const char *name);

/* The unit of the value of a row. name: of a row of LEVEL_TOTAL. */
enum unit level_unit(enum level level, const char *name);

/* These texts are valid as those of text_print() are. */

/* "12.3 ms", "4.50 MiB", "1,096". NAN: "?". */
const char *format_amount(enum unit unit, double value);

/* With sign: "+4.82 %", "new", "gone". */
const char *format_ratio(double ratio);

/* Without sign: "1.4 %". */
const char *format_percent(double ratio);

/* Shortens the argument that named a side: "base.1 and 4 more". */
const char *format_argument(const char *argument);

#endif
