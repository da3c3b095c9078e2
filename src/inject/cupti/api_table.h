/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which API calls are recorded, and their class.
 *
 * Only the driver API: every runtime API call that reaches the GPU goes through it. Rules match the
 * callback names that CUPTI reports, so functions of later CUDA releases need no new table of
 * numbers.
 */
#ifndef XT_INJECT_API_TABLE_H
#define XT_INJECT_API_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "xtrace/log_format.h"

#include "inject/runtime/hot_state.h"

/* How much to record; each level includes the previous one. */
enum api_level {
	API_LEVEL_LAUNCH, /* kernel launches */
	API_LEVEL_WORK, /* other calls that create or await work: copies, memsets, memory, waits, modules */
	API_LEVEL_ALL, /* calls about events, graphs, streams, contexts */
};

struct recorded_api {
	uint32_t id;	  /* XT_API_ID: domain << 16 | callback id */
	uint32_t class;	  /* enum xt_api_class */
	const char *name; /* valid while libcupti is loaded */
};

struct api_table {
	struct recorded_api *apis;
	uint32_t count;
};
extern struct api_table recorded_apis;

/* Properties of driver API callbacks, by callback id. */
enum api_use {
	API_SETS_NODE = 1 << 0,	     /* changes a node: the first argument, a CUgraphNode */
	API_SETS_EXEC_NODE = 1 << 1, /* changes a node of a CUgraphExec: arguments are both */
	API_IS_UNRECORDED = 1 << 2,  /* not recorded at this level */
	API_UPDATES_EXEC = 1 << 3,   /* changes a CUgraphExec to match a CUgraph */
	API_SETS_EXEC_CHILD =
		1 << 4, /* with API_SETS_EXEC_NODE; the third argument is the new child CUgraph */
	API_IS_PROFILER = 1 << 5,	 /* see enum profiler_call */
	API_MAKES_WORK = 1 << 6,	 /* a launch, copy or memset: its stack may be sampled */
	API_LAUNCHES_GRAPH = 1 << 7,	 /* first argument: a CUgraphExec */
	API_INSTANTIATES_GRAPH = 1 << 8, /* first argument: where it stores the CUgraphExec */
	API_ADDS_KERNEL_NODE = 1 << 9,	 /* fifth argument: CUDA_KERNEL_NODE_PARAMS */
	API_ADDS_NODE = 1 << 10,	 /* fifth argument: CUgraphNodeParams */
	API_ADDS_NODE_V2 = 1 << 11,	 /* sixth argument: the same */
	API_FREES_ASYNC = 1 << 12,	 /* first argument: the address */
	API_SYNCS_CONTEXT = 1 << 13,	 /* waits for all work of a context */
	API_SYNCS_STREAM = 1 << 14,	 /* first argument: the CUstream that it waits for */
	API_DELAYS_STOP = 1 << 15,	 /* kinds do not change meanwhile: graph_level.h */
};
enum {
	API_CHANGES_NODES =
		API_SETS_NODE | API_SETS_EXEC_NODE | API_UPDATES_EXEC | API_SETS_EXEC_CHILD,
	API_NAMES_NODE = API_ADDS_KERNEL_NODE | API_ADDS_NODE | API_ADDS_NODE_V2,
	API_SYNCS = API_SYNCS_CONTEXT | API_SYNCS_STREAM, /* only with CUPTI before CUDA 13 */
	/* Calls that graph_level.h and cupti_subscriber.h must know. */
	API_CHANGES_KINDS = API_LAUNCHES_GRAPH | API_INSTANTIATES_GRAPH | API_FREES_ASYNC |
			    API_SYNCS | API_DELAYS_STOP,
	/* Calls about graphs that are handled at every level. */
	API_MAKES_GRAPHS = API_CHANGES_NODES | API_INSTANTIATES_GRAPH | API_NAMES_NODE,
};
#define API_CBID_END 2048		    /* above all known callback ids, with a margin */
HOT_EXTERN uint32_t api_uses[API_CBID_END]; /* enum api_use */

/* Fills recorded_apis and api_uses. Once, at start-up, after libcupti was opened. 0 or -ENOMEM. */
int api_table_fill(enum api_level level);

/* Returns bits of enum api_use for a call of this name, or 0. */
uint32_t api_use_of(const char *name);

/* The class of a recorded call, by XT_API_ID; XT_API_OTHER if it is not recorded. Any id. */
uint32_t api_class(uint32_t id);

/* Whether a recorded call launches kernels. Accepts any id. */
bool api_makes_kernels(uint32_t id);

/* The class of a driver API function; XT_API_CLASSES if it has none. */
uint32_t api_class_of(const char *name);

/* The level that a class of calls belongs to. */
enum api_level api_level_of(uint32_t class);

#endif
