/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of call paths. docs/WEIGHTS.md defines each.
 */
#ifndef XT_MERGE_WEIGHTS_H
#define XT_MERGE_WEIGHTS_H

#include <stdbool.h>

enum weight {
	WEIGHT_GPU_TIME,
	WEIGHT_COUNT,
	WEIGHT_CPU_WAIT,
	WEIGHT_GPU_EXCLUSIVE,
	WEIGHT_GPU_IDLE,
	WEIGHT_ALLOC_BYTES,
	WEIGHT_PEAK_BYTES,
	WEIGHT_LEAKED_BYTES,
	WEIGHT_CPU_TIME,
	WEIGHT_OFF_CPU,
	WEIGHT_COLLECTIVE_WAIT,
	WEIGHT_COLLECTIVE_CAUSE,
	WEIGHT_UNTIMED,
	WEIGHTS
};

/* Time of host threads. Need a CPU log. */
#define CPU_WEIGHTS (1u << WEIGHT_CPU_TIME | 1u << WEIGHT_OFF_CPU)
/* Need a comparison of several logs. */
#define RANK_WEIGHTS (1u << WEIGHT_COLLECTIVE_WAIT | 1u << WEIGHT_COLLECTIVE_CAUSE)
/* Need CUDA graphs that were recorded as a whole. Known after the last log is read. */
#define GRAPH_WEIGHTS (1u << WEIGHT_UNTIMED)

struct weight_spec {
	const char *name; /* value of --weight */
	bool is_time;	  /* in ns; otherwise bytes or a count */
	bool has_device;  /* belongs to one device */
	bool has_stream;  /* belongs to one stream */
};
extern const struct weight_spec weight_specs[WEIGHTS];

/* "ns", "bytes" or "count". */
const char *weight_unit(enum weight weight);

#endif
