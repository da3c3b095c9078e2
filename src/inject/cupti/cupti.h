/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUPTI and the driver offer: candidates for the library, a table of its functions, names of
 * the GPUs, API calls and their classes.
 */
#ifndef XT_INJECT_CUPTI_H
#define XT_INJECT_CUPTI_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "inject/runtime/hot_state.h"
#include "xtrace/log_format.h"

#define CUPTI_MEMBER(need, name, arguments) uint32_t(*name) arguments;
struct cupti_table {
	CUPTI_FUNCTIONS(CUPTI_MEMBER)
	/* The driver's: stores the name of a CUfunction. NULL before CUDA 12.3. */
	int (*cuFuncGetName)(const char **name_out, void *function);
	/* The driver's: fail until cuInit() has returned. */
	int (*cuDeviceGetCount)(int *count_out);
	int (*cuDevicePrimaryCtxGetState)(int device, unsigned *flags_out, int *is_active_out);
	int (*cuPointerGetAttribute)(void *value_out, int attribute, uint64_t address);
	int (*cuMemPoolGetAttribute)(void *pool, int attribute, void *value_out);
	uint32_t version;      /* CUPTI_API_VERSION of the library */
	uint32_t cuda_version; /* of the driver: 13000 is 13.0 */
	char path[PATH_MAX];
	void *library;
	const char *found_by; /* search rule, for the log */
};
#undef CUPTI_MEMBER

extern struct cupti_table cupti;

/*
 * Finds a libcupti that suits the driver and fills the table. asked_path: the only candidate, or
 * empty to search in the order of docs/internals/ARCHITECTURE.md. 0, or -errno with one line in
 * `why`. Once, at start-up.
 */
int cupti_open(const char *asked_path, char *why, size_t why_bytes);

/* A function of the driver, if that is loaded, or NULL. Takes the loader's lock. */
void *driver_function(const char *name);

/*
 * Whether cuInit() has returned, which calls InitializeInjection(). CUPTI crashes if kernel records
 * are disabled before. Any thread.
 */
bool cupti_driver_is_ready(void);

/* Whether the result is an error other than "this CUPTI lacks the function, kind or record". */
bool cupti_has_failed(uint32_t result);

/* Functions and kinds of GPU work that CUPTI failed to enable; kinds given up as unsafe. */
extern atomic_uint_fast64_t cupti_lost_apis, cupti_lost_kinds, cupti_unsafe_kinds;
extern atomic_uint_fast64_t cupti_unsafe_memory; /* 1: records of memory were given up */

/* GPU modules unloaded so far. A kernel name pointer read before an unload may be stale. */
extern atomic_uint_fast64_t cupti_module_unloads;

/* The text of a CUPTI result; static. */
const char *cupti_result_text(uint32_t result);

/* Candidates for libcupti, best first. Start-up only; may allocate. */
struct cupti_candidate {
	char path[PATH_MAX]; /* for dlopen(): absolute, or a bare name */
	const char *rule;    /* static: the rule that found it */
};

struct cupti_search;

/* asked_path: if not empty, the only candidate. NULL if out of memory. */
struct cupti_search *cupti_search_begin(const char *asked_path);

/* The next candidate that exists; false when there are no more. */
bool cupti_search_next(struct cupti_search *search, struct cupti_candidate *candidate);

/* The searched places, for a message; valid until cupti_search_end(). */
const char *cupti_search_places(const struct cupti_search *search);

void cupti_search_end(struct cupti_search *search);

/* Names, UUIDs and limits of the GPUs, from the driver. */
#define GPUS_MAX       64
#define GPU_NAME_BYTES 128
#define GPU_UUID_BYTES 16

/* Attributes of a device, as "gpu.<n>.<name>" in the log: X(id, CUdevice_attribute, name). */
#define GPU_LIMIT_LIST(X)                                                                          \
	X(MULTIPROCESSORS, 16, "multiprocessors")                                                  \
	X(CAPABILITY_MAJOR, 75, "compute_capability_major")                                        \
	X(CAPABILITY_MINOR, 76, "compute_capability_minor")                                        \
	X(THREADS, 39, "threads_per_multiprocessor")                                               \
	X(BLOCKS, 106, "blocks_per_multiprocessor")                                                \
	X(REGISTERS, 82, "registers_per_multiprocessor")                                           \
	X(SHARED_BYTES, 81, "shared_bytes_per_multiprocessor")                                     \
	X(RESERVED_SHARED_BYTES, 111, "reserved_shared_bytes_per_block")
#define GPU_LIMIT_ID(id, attribute, name) GPU_##id,
enum gpu_limit { GPU_LIMIT_LIST(GPU_LIMIT_ID) GPU_LIMITS };

extern const char *const gpu_limit_names[GPU_LIMITS];

struct gpu_names {
	uint32_t count;
	char names[GPUS_MAX][GPU_NAME_BYTES];
	int limits[GPUS_MAX][GPU_LIMITS]; /* -1: unknown */
	uint8_t uuids[GPUS_MAX]
		     [GPU_UUID_BYTES]; /* of a MIG instance, if it is one; zeros: unknown */
};

/*
 * Asks the driver. The flusher thread calls it until gpu_names() returns a result. May hang in the
 * driver.
 */
void gpu_names_read(void);

/* NULL until the driver has answered. Any thread. */
const struct gpu_names *gpu_names(void);

/*
 * Which API calls are recorded, and their class.
 *
 * Only the driver API: every runtime API call that reaches the GPU goes through it. Rules match the
 * callback names that CUPTI reports, so functions of later CUDA releases need no new table of
 * numbers.
 *
 * How much to record; each level includes the previous one.
 */
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
