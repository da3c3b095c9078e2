/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of call paths. docs/WEIGHTS.md defines each.
 */
#ifndef XT_MERGE_WEIGHTS_H
#define XT_MERGE_WEIGHTS_H

#include <stdbool.h>

/* X(weight, members of struct weight_spec) */
#define WEIGHT_LIST(X)                                                                             \
	X(GPU_TIME, "gpu-time", true, true, true)                                                  \
	X(COUNT, "count", false, true, true)                                                       \
	X(CPU_WAIT, "cpu-wait", true, false, false)                                                \
	X(GPU_EXCLUSIVE, "gpu-exclusive", true, true, true)                                        \
	X(GPU_IDLE, "gpu-idle", true, true, true)                                                  \
	X(ALLOC_BYTES, "alloc-bytes", false, true, false)                                          \
	X(PEAK_BYTES, "peak-bytes", false, true, false)                                            \
	X(LEAKED_BYTES, "leaked-bytes", false, true, false)                                        \
	X(CPU_TIME, "cpu-time", true, false, false)                                                \
	X(OFF_CPU, "off-cpu", true, false, false)                                                  \
	X(COLLECTIVE_WAIT, "collective-wait", true, true, true)                                    \
	X(COLLECTIVE_CAUSE, "collective-cause", true, true, true)                                  \
	X(UNTIMED, "untimed-launches", false, true, true)

#define WEIGHT_ID(weight, ...) WEIGHT_##weight,
enum weight { WEIGHT_LIST(WEIGHT_ID) WEIGHTS };

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
