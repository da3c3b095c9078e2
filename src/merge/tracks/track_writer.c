/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/track_writer.h"

const char *const track_categories[CATEGORIES] = {
	[CATEGORY_API] = "api",	      [CATEGORY_KERNEL] = "kernel", [CATEGORY_COPY] = "memcpy",
	[CATEGORY_MEMSET] = "memset", [CATEGORY_NVTX] = "nvtx",	    [CATEGORY_CPU] = "cpu",
};

const char *const track_args[ARG_KEYS] = {
	[ARG_LAUNCH] = "launch",
	[ARG_COPY] = "copy",
	[ARG_BYTES] = "bytes",
	[ARG_ERROR] = "error",
	[ARG_PAYLOAD] = "payload",
	[ARG_STATE] = "state",
	[ARG_CATEGORY] = "category",
	[ARG_VALUES] = "values",
	[ARG_COLOR] = "argb",
	[ARG_CORRELATION] = "correlation",
	[ARG_GRAPH_NODE] = "graph_node",
	[ARG_BANDWIDTH] = "gigabytes_per_second",
	[ARG_FUNCTION] = "function",
	[ARG_GRID] = "grid",
	[ARG_BLOCK] = "block",
	[ARG_REGISTERS] = "registers",
	[ARG_STATIC_SHARED] = "static_shared_bytes",
	[ARG_DYNAMIC_SHARED] = "dynamic_shared_bytes",
	[ARG_SOURCE] = "source",
	[ARG_DESTINATION] = "destination",
	[ARG_ASYNCHRONOUS] = "asynchronous",
	[ARG_FROM_DEVICE] = "from_device",
	[ARG_TO_DEVICE] = "to_device",
	[ARG_MEMORY] = "memory",
	[ARG_DEVICE] = "device",
	[ARG_CONTEXT] = "context",
	[ARG_STREAM] = "stream",
	[ARG_WAIT_PID] = "waits_for_pid",
	[ARG_WAIT_TID] = "waits_for_tid",
};
