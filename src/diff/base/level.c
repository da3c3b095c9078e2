/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of levels.
 */
#include "diff/base/level.h"

#include <string.h>

const struct level_spec level_specs[LEVELS] = {
	[LEVEL_TOTAL] = {"totals", "total", "Whole run", UNIT_NS, false, false},
	[LEVEL_IDLE] = {"idle", "idle", "GPU idle time by cause", UNIT_NS, false, false},
	[LEVEL_COPY] = {"copies", "copy", "GPU time of copies and memsets", UNIT_NS, true, false},
	[LEVEL_BYTES] = {"bytes", "bytes", "Bytes of copies and memsets", UNIT_BYTES, false, false},
	[LEVEL_MEMORY] = {"memory", "memory", "Peak memory", UNIT_BYTES, false, false},
	[LEVEL_RANGE] = {"ranges", "range", "GPU time by NVTX range", UNIT_NS, true, false},
	[LEVEL_SPAN] = {"spans", "span", "Wall time in NVTX ranges", UNIT_NS, false, false},
	[LEVEL_KERNEL] = {"kernels", "kernel", "GPU time by kernel", UNIT_NS, true, false},
	[LEVEL_API] = {"apis", "api", "CPU time by API function, sum over threads", UNIT_NS, false,
		       false},
	[LEVEL_PATH] = {"paths", "path", "GPU time by call path", UNIT_NS, true, true},
	[LEVEL_CALL] = {"calls", "call",
			"CPU time in calls that wait, allocate or free, sum over threads", UNIT_NS,
			false, true},
};

enum unit total_unit(const char *name)
{
	static const struct {
		const char *name;
		enum unit unit;
	} others[] = {{"launches", UNIT_COUNT},
		      {"iterations", UNIT_COUNT},
		      {"bytes", UNIT_BYTES},
		      {"peak-memory", UNIT_BYTES}};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(others[i].name, name))
			return others[i].unit;
	return UNIT_NS;
}
