/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which API calls are recorded, and what they are.
 *
 * The driver API alone: every call of the runtime API that reaches the GPU comes through it. CUPTI
 * names its callbacks; rules over the names say what a call is. So functions and variants of
 * later CUDA releases are recorded without a new table of numbers.
 */
#ifndef XT_INJECT_API_TABLE_H
#define XT_INJECT_API_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "xtrace/log_format.h"

/* How much is recorded; each level has all of the one before. */
enum api_level {
	API_LEVEL_LAUNCH, /* what launches kernels */
	API_LEVEL_WORK, /* and what else makes or awaits work: copies, sets, memory, waits, code */
	API_LEVEL_ALL,	/* and what lives around it: events, graphs, streams, contexts */
};

struct recorded_api {
	uint32_t id;	  /* XT_API_ID: domain << 16 | callback id */
	uint32_t class;	  /* enum xt_api_class */
	const char *name; /* lives as long as libcupti */
};

struct api_table {
	struct recorded_api *apis;
	uint32_t count;
};
extern struct api_table recorded_apis;

/* What there is to a callback of the driver API beyond a call that is recorded, by callback id. */
enum api_use {
	API_SETS_NODE = 1 << 0, /* first argument: a CUgraphNode, which is to do something else */
	API_SETS_EXEC_NODE = 1 << 1,  /* a CUgraphExec, and a node of the graph it was made from */
	API_IS_UNRECORDED = 1 << 2,   /* the call itself is beyond the level */
	API_UPDATES_EXEC = 1 << 3,    /* a CUgraphExec, and the CUgraph that it is to be as */
	API_SETS_EXEC_CHILD = 1 << 4, /* with API_SETS_EXEC_NODE: and third, as what CUgraph */
	API_IS_PROFILER = 1 << 5,     /* see profiler_calls.h */
	API_MAKES_WORK = 1 << 6,      /* a launch, copy or set: its stack may be left to chance */
	API_LAUNCHES_GRAPH = 1 << 7,  /* first argument: a CUgraphExec */
};
/* What says that nodes are to do something else: such calls are looked at at every level. */
enum {
	API_CHANGES_NODES =
		API_SETS_NODE | API_SETS_EXEC_NODE | API_UPDATES_EXEC | API_SETS_EXEC_CHILD,
};
#define API_CBID_END 2048 /* beyond the last callback id of any CUPTI so far, with room */
extern uint8_t api_uses[API_CBID_END]; /* enum api_use */

/* Fills recorded_apis and api_uses. Once, at start-up, after libcupti was opened. 0 or -ENOMEM. */
int api_table_fill(enum api_level level);

/* How a call of that name changes a node of a graph: enum api_use, 0 if it does not. */
uint32_t api_node_use(const char *name);

/* Is it a recorded call that launches kernels? By XT_API_ID; any will do. */
bool api_makes_kernels(uint32_t id);

/* The class of a function of the driver API by its name, XT_API_CLASSES if it is of none. */
uint32_t api_class_of(const char *name);

/* The level that a class of calls belongs to. */
enum api_level api_level_of(uint32_t class);

#endif
