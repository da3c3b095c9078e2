/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What call paths can be weighted by. docs/WEIGHTS.md defines each.
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
	WEIGHTS
};

struct weight_spec {
	const char *name; /* as the option has it */
	bool is_time;	  /* in ns; else a number, of bytes or of pieces of work */
	bool has_device;  /* what is weighed is of one device … */
	bool has_stream;  /* … and of one stream */
};
extern const struct weight_spec weight_specs[WEIGHTS];

/* "ns", "bytes" or "count". */
const char *weight_unit(enum weight weight);

#endif
