/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/base/weights.h"

const struct weight_spec weight_specs[WEIGHTS] = {
	[WEIGHT_GPU_TIME] = {"gpu-time", true, true, true},
	[WEIGHT_COUNT] = {"count", false, true, true},
	[WEIGHT_CPU_WAIT] = {"cpu-wait", true, false, false},
	[WEIGHT_GPU_EXCLUSIVE] = {"gpu-exclusive", true, true, true},
	[WEIGHT_GPU_IDLE] = {"gpu-idle", true, true, true},
	[WEIGHT_ALLOC_BYTES] = {"alloc-bytes", false, true, false},
	[WEIGHT_PEAK_BYTES] = {"peak-bytes", false, true, false},
	[WEIGHT_LEAKED_BYTES] = {"leaked-bytes", false, true, false},
	[WEIGHT_CPU_TIME] = {"cpu-time", true, false, false},
	[WEIGHT_OFF_CPU] = {"off-cpu", true, false, false},
	[WEIGHT_COLLECTIVE_WAIT] = {"collective-wait", true, true, true},
	[WEIGHT_COLLECTIVE_CAUSE] = {"collective-cause", true, true, true},
	[WEIGHT_UNTIMED] = {"untimed-launches", false, true, true},
};

const char *weight_unit(enum weight weight)
{
	if (weight_specs[weight].is_time)
		return "ns";
	return weight == WEIGHT_COUNT || weight == WEIGHT_UNTIMED ? "count" : "bytes";
}
