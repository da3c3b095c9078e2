/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of CUPTI that xtrace uses: constants, record layouts, callback data and entry points of
 * libcupti 11.8 to 13.x on 64-bit Linux. No CUDA header is needed, and no name clashes with one.
 * tests/conformance compares every constant, size and offset with the real headers, if they are
 * installed.
 *
 * Driver handles (CUcontext, CUstream, CUgraph, CUgraphNode, CUmodule) are `void *` here. Activity
 * records are 8-byte aligned. Read only the fields declared here: later CUPTI versions append
 * fields.
 */
#ifndef XTRACE_CUDA_ABI_CUPTI_ABI_H
#define XTRACE_CUDA_ABI_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* CUPTI_API_VERSION is at least this from that release of CUDA on. */
enum { XT_CUPTI_OF_CUDA12 = 19, XT_CUPTI_OF_CUDA12_9 = 27 };
enum { XT_CUPTI_OF_CUDA13 = 100000, XT_CUPTI_OF_CUDA13_0_1 = 130001 };

/* Values of CUresult. */
enum { XT_CUDA_ERROR_NOT_INITIALIZED = 3, XT_CUDA_ERROR_DEINITIALIZED = 4 };

/* Result codes: X(name, value). MAX_LIMIT_REACHED from GetNextRecord: no more records. */
#define XT_CUPTI_RESULTS(X)                                                                        \
	X(CUPTI_SUCCESS, 0)                                                                        \
	X(CUPTI_ERROR_INVALID_PARAMETER, 1)                                                        \
	X(CUPTI_ERROR_INVALID_DEVICE, 2)                                                           \
	X(CUPTI_ERROR_INVALID_CONTEXT, 3)                                                          \
	X(CUPTI_ERROR_INVALID_OPERATION, 7)                                                        \
	X(CUPTI_ERROR_OUT_OF_MEMORY, 8)                                                            \
	X(CUPTI_ERROR_HARDWARE, 9)                                                                 \
	X(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, 10)                                           \
	X(CUPTI_ERROR_API_NOT_IMPLEMENTED, 11)                                                     \
	X(CUPTI_ERROR_MAX_LIMIT_REACHED, 12)                                                       \
	X(CUPTI_ERROR_NOT_READY, 13)                                                               \
	X(CUPTI_ERROR_NOT_COMPATIBLE, 14)                                                          \
	X(CUPTI_ERROR_NOT_INITIALIZED, 15)                                                         \
	X(CUPTI_ERROR_QUEUE_EMPTY, 18)                                                             \
	X(CUPTI_ERROR_INVALID_STREAM, 20)                                                          \
	X(CUPTI_ERROR_INVALID_KIND, 21)                                                            \
	X(CUPTI_ERROR_DISABLED, 23)                                                                \
	X(CUPTI_ERROR_NOT_SUPPORTED, 27)                                                           \
	X(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 35)                                                 \
	X(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39)                                      \
	X(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, 40)                              \
	X(CUPTI_ERROR_UNKNOWN, 999)

#define XT_CUPTI_RESULT(name, value) XT_##name = (value),
enum xt_cupti_result { XT_CUPTI_RESULTS(XT_CUPTI_RESULT) };
#undef XT_CUPTI_RESULT

enum xt_cupti_domain {
	XT_CUPTI_CB_DOMAIN_DRIVER_API = 1,
	XT_CUPTI_CB_DOMAIN_RUNTIME_API = 2,
	XT_CUPTI_CB_DOMAIN_RESOURCE = 3,
	XT_CUPTI_CB_DOMAIN_SYNCHRONIZE = 4,
	XT_CUPTI_CB_DOMAIN_NVTX = 5,
	XT_CUPTI_CB_DOMAIN_STATE = 6,
};

enum xt_cupti_site { XT_CUPTI_API_ENTER = 0, XT_CUPTI_API_EXIT = 1 };

/* cbdata of the driver and runtime API domains. Valid during the callback only. */
struct cupti_callback_data {
	uint32_t site; /* enum xt_cupti_site */
	uint32_t padding0;
	const char *function_name;
	const void *function_params; /* struct of the call's arguments in order */
	void *return_value;	     /* at EXIT: CUresult or cudaError_t */
	const char *symbol_name;     /* name of the kernel in launch calls; else NULL */
	void *context;
	uint32_t context_id;
	uint32_t padding1;
	uint64_t *correlation_data; /* one slot for each call, shared by ENTER and EXIT */
	uint32_t correlation_id;    /* the same as in the call's activity records */
	uint32_t padding2;
};

/* Callback ids of the resource domain. */
enum xt_cupti_resource {
	XT_CUPTI_RESOURCE_CONTEXT_CREATED = 1,
	XT_CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
	XT_CUPTI_RESOURCE_STREAM_CREATED = 3,
	XT_CUPTI_RESOURCE_STREAM_DESTROY_STARTING = 4,
	XT_CUPTI_RESOURCE_CU_INIT_FINISHED = 5,
	XT_CUPTI_RESOURCE_MODULE_LOADED = 6,
	XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING = 7,
	XT_CUPTI_RESOURCE_MODULE_PROFILED = 8,
	XT_CUPTI_RESOURCE_GRAPH_CREATED = 9,
	XT_CUPTI_RESOURCE_GRAPH_DESTROY_STARTING = 10,
	XT_CUPTI_RESOURCE_GRAPH_CLONED = 11,
	XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING = 12,
	XT_CUPTI_RESOURCE_GRAPHNODE_CREATED = 13,
	XT_CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING = 14,
	XT_CUPTI_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED = 15,
	XT_CUPTI_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING = 16,
	XT_CUPTI_RESOURCE_GRAPHEXEC_CREATE_STARTING = 17,
	XT_CUPTI_RESOURCE_GRAPHEXEC_CREATED = 18,
	XT_CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING = 19,
	XT_CUPTI_RESOURCE_GRAPHNODE_CLONED = 20,
};

/* cbdata of the resource domain. */
struct cupti_resource_data {
	void *context;
	void *stream;	  /* in the stream callbacks */
	void *descriptor; /* struct cupti_module_data or cupti_graph_data, depending on the id */
};

struct cupti_module_data {
	uint32_t module_id;
	uint32_t padding0;
	size_t cubin_bytes;
	const char *cubin;
};

struct cupti_graph_data {
	void *graph;
	void *original_graph; /* of GRAPH_CLONED and GRAPHNODE_CLONED: the source */
	void *node;
	void *original_node;
	uint32_t node_type; /* enum xt_cupti_node_type */
	uint32_t padding0;
	void *dependency;
	void *graph_exec;
};

enum xt_cupti_node_type {
	XT_CUPTI_NODE_KERNEL = 0,
	XT_CUPTI_NODE_MEMCPY = 1,
	XT_CUPTI_NODE_MEMSET = 2,
	XT_CUPTI_NODE_HOST = 3,
	XT_CUPTI_NODE_GRAPH = 4,
	XT_CUPTI_NODE_EMPTY = 5,
	XT_CUPTI_NODE_CONDITIONAL = 13,
};

/*
 * Calls that launch work: X(name, id, class), with the names of cuptiGetCallbackName(). class is
 * KERNEL for one kernel, or GRAPH for all kernels of a graph.
 */
#define XT_CUPTI_DRIVER_LAUNCHES(X)                                                                \
	X(cuLaunch, 115, KERNEL)                                                                   \
	X(cuLaunchGrid, 116, KERNEL)                                                               \
	X(cuLaunchGridAsync, 117, KERNEL)                                                          \
	X(cuLaunchKernel, 307, KERNEL)                                                             \
	X(cuLaunchKernel_ptsz, 442, KERNEL)                                                        \
	X(cuLaunchCooperativeKernel, 477, KERNEL)                                                  \
	X(cuLaunchCooperativeKernel_ptsz, 478, KERNEL)                                             \
	X(cuLaunchCooperativeKernelMultiDevice, 480, KERNEL)                                       \
	X(cuGraphLaunch, 514, GRAPH)                                                               \
	X(cuGraphLaunch_ptsz, 515, GRAPH)                                                          \
	X(cuLaunchKernelEx, 652, KERNEL)                                                           \
	X(cuLaunchKernelEx_ptsz, 653, KERNEL)

#define XT_CUPTI_RUNTIME_LAUNCHES(X)                                                               \
	X(cudaLaunch_v3020, 13, KERNEL)                                                            \
	X(cudaLaunchKernel_v7000, 211, KERNEL)                                                     \
	X(cudaLaunch_ptsz_v7000, 213, KERNEL)                                                      \
	X(cudaLaunchKernel_ptsz_v7000, 214, KERNEL)                                                \
	X(cudaLaunchCooperativeKernel_v9000, 269, KERNEL)                                          \
	X(cudaLaunchCooperativeKernel_ptsz_v9000, 270, KERNEL)                                     \
	X(cudaLaunchCooperativeKernelMultiDevice_v9000, 272, KERNEL)                               \
	X(cudaGraphLaunch_v10000, 311, GRAPH)                                                      \
	X(cudaGraphLaunch_ptsz_v10000, 312, GRAPH)                                                 \
	X(cudaLaunchKernelExC_v11060, 430, KERNEL)                                                 \
	X(cudaLaunchKernelExC_ptsz_v11060, 431, KERNEL)                                            \
	X(__cudaLaunchKernel_v13000, 505, KERNEL)                                                  \
	X(__cudaLaunchKernel_ptsz_v13000, 506, KERNEL)

#define XT_CUPTI_CBID(name, id, class) XT_CUPTI_CBID_##name = (id),
enum xt_cupti_driver_cbid { XT_CUPTI_DRIVER_LAUNCHES(XT_CUPTI_CBID) };
enum xt_cupti_runtime_cbid { XT_CUPTI_RUNTIME_LAUNCHES(XT_CUPTI_CBID) };
#undef XT_CUPTI_CBID

enum xt_cupti_activity_kind {
	XT_CUPTI_ACTIVITY_INVALID = 0, /* not a record: the zeroed rest of a buffer */
	XT_CUPTI_ACTIVITY_MEMCPY = 1,
	XT_CUPTI_ACTIVITY_MEMSET = 2,
	XT_CUPTI_ACTIVITY_KERNEL = 3, /* enabling it serialises kernels */
	XT_CUPTI_ACTIVITY_DRIVER = 4,
	XT_CUPTI_ACTIVITY_RUNTIME = 5,
	XT_CUPTI_ACTIVITY_DEVICE = 8,
	XT_CUPTI_ACTIVITY_CONTEXT = 9,
	XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL = 10,
	XT_CUPTI_ACTIVITY_NAME = 11,
	XT_CUPTI_ACTIVITY_MARKER = 12,
	XT_CUPTI_ACTIVITY_OVERHEAD = 17,
	XT_CUPTI_ACTIVITY_CDP_KERNEL = 18,
	XT_CUPTI_ACTIVITY_MEMCPY2 = 22, /* between devices */
	XT_CUPTI_ACTIVITY_SYNCHRONIZATION = 38,
	XT_CUPTI_ACTIVITY_EXTERNAL_CORRELATION = 39,
	XT_CUPTI_ACTIVITY_INTERNAL_LAUNCH_API = 48,
	XT_CUPTI_ACTIVITY_MEMORY2 = 49,
	XT_CUPTI_ACTIVITY_GRAPH_TRACE = 51,
};

/* The common beginning of all activity records. */
struct cupti_activity {
	uint32_t kind; /* enum xt_cupti_activity_kind */
};

/*
 * KERNEL and CONCURRENT_KERNEL. The offsets up to `name` are valid since Kernel4 (9.0), those up to
 * `graph_node_id` since Kernel5 (11.0). The whole is Kernel10 (13.0).
 */
struct cupti_activity_kernel {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_memory_config;
	uint16_t registers_per_thread;
	uint32_t partitioned_cache_requested;
	uint32_t partitioned_cache_executed;
	uint64_t start_ns; /* 0 if it could not be collected */
	uint64_t end_ns;   /* 0 if unknown, or if a forced flush precedes the end */
	uint64_t completed_ns;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	int32_t grid[3];
	int32_t block[3];
	int32_t static_shared_bytes;
	int32_t dynamic_shared_bytes;
	uint32_t local_bytes_per_thread;
	uint32_t local_bytes_total;
	uint32_t correlation_id; /* of the launch; all kernels of a graph launch share it */
	int64_t grid_id;
	const char *name; /* mangled; valid as long as the module */
	void *reserved0;
	uint64_t queued_ns;
	uint64_t submitted_ns;
	uint8_t launch_type; /* 0 regular, 1 cooperative */
	uint8_t carveout_is_requested;
	uint8_t carveout_requested;
	uint8_t padding0;
	uint32_t shared_executed_bytes;
	uint64_t graph_node_id; /* 0 outside graphs */
	uint32_t shared_limit_config;
	uint32_t graph_id;
	void *access_policy_window;
	uint32_t channel_id;
	uint32_t channel_type;
	uint32_t cluster[3];
	uint32_t cluster_scheduling_policy;
	uint64_t local_bytes_total_v2;
	uint32_t max_potential_cluster_size;
	uint32_t max_active_clusters;
	uint8_t is_device_launched;
	uint8_t padding1[7];
};

/* MEMCPY. Stable since the first version; graph_node_id since Memcpy4 (11.0). */
struct cupti_activity_memcpy {
	uint32_t kind;
	uint8_t copy_kind; /* enum xt_cupti_copy_kind */
	uint8_t source_kind;
	uint8_t destination_kind;
	uint8_t flags; /* XT_CUPTI_FLAG_ASYNC */
	uint64_t bytes;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	uint32_t correlation_id;
	uint32_t runtime_correlation_id;
	uint32_t padding0;
	void *reserved0;
	uint64_t graph_node_id;
	uint32_t graph_id;
	uint32_t channel_id;
	uint32_t channel_type;
	uint8_t is_device_launched;
	uint8_t padding1[3];
	uint64_t copy_count;
};

enum xt_cupti_copy_kind {
	XT_CUPTI_COPY_HTOD = 1,
	XT_CUPTI_COPY_DTOH = 2,
	XT_CUPTI_COPY_DTOD = 8,
	XT_CUPTI_COPY_HTOH = 9,
	XT_CUPTI_COPY_PTOP = 10,
};

enum xt_cupti_memory_kind {
	XT_CUPTI_MEMORY_PAGEABLE = 1,
	XT_CUPTI_MEMORY_PINNED = 2,
	XT_CUPTI_MEMORY_DEVICE = 3,
	XT_CUPTI_MEMORY_MANAGED = 5,
};

/*
 * MEMCPY2, a copy between devices: MemcpyPtoP to MemcpyPtoP4. graph_node_id since MemcpyPtoP3
 * (11.1).
 */
struct cupti_activity_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind; /* enum xt_cupti_copy_kind */
	uint8_t source_kind;
	uint8_t destination_kind;
	uint8_t flags; /* XT_CUPTI_FLAG_ASYNC */
	uint64_t bytes;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	uint32_t source_device_id;
	uint32_t source_context_id;
	uint32_t destination_device_id;
	uint32_t destination_context_id;
	uint32_t correlation_id;
	void *reserved0;
	uint64_t graph_node_id;
	uint32_t graph_id;
	uint32_t channel_id;
	uint32_t channel_type;
	uint32_t padding0;
};

enum xt_cupti_memory_operation { XT_CUPTI_MEMORY_ALLOC = 1, XT_CUPTI_MEMORY_RELEASE = 2 };

/* MEMORY2: the common part of Memory2 (11.1) to Memory4. */
struct cupti_activity_memory {
	uint32_t kind;
	uint32_t operation; /* enum xt_cupti_memory_operation */
	uint32_t memory_kind;
	uint32_t correlation_id;
	uint64_t address;
	uint64_t bytes;
	uint64_t timestamp_ns;
	uint64_t program_counter;
	uint32_t process_id;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
};

/* MEMSET. Stable since the first version; graph_node_id since Memset3 (11.0). */
struct cupti_activity_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	uint32_t correlation_id;
	uint16_t flags;	      /* XT_CUPTI_FLAG_ASYNC */
	uint16_t memory_kind; /* enum xt_cupti_memory_kind */
	uint32_t padding0;
	void *reserved0;
	uint64_t graph_node_id;
	uint32_t graph_id;
	uint32_t channel_id;
	uint32_t channel_type;
	uint8_t is_device_launched;
	uint8_t padding1[3];
};

/* DRIVER and RUNTIME. */
struct cupti_activity_api {
	uint32_t kind;
	uint32_t cbid;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t process_id;
	uint32_t thread_id;
	uint32_t correlation_id;
	uint32_t return_value;
};

/*
 * GRAPH_TRACE: a launch of a graph as a whole. The fields up to `reserved0` are GraphTrace (11.7).
 * The whole is GraphTrace2.
 */
struct cupti_activity_graph_trace {
	uint32_t kind;
	uint32_t correlation_id; /* of the launch */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device_id; /* of the first node */
	uint32_t graph_id;  /* of the executable graph */
	uint32_t context_id;
	uint32_t stream_id;
	void *reserved0;
	uint32_t end_device_id; /* of the last node */
	uint32_t end_context_id;
};

/* DEVICE: Device4 (11.6) and later; the fields up to `name` since Device2. */
struct cupti_activity_device {
	uint32_t kind;
	uint32_t flags;
	uint64_t global_memory_bandwidth_kbps; /* kilobytes per second */
	uint64_t global_memory_bytes;
	uint32_t constant_memory_bytes;
	uint32_t l2_cache_bytes;
	uint32_t threads_per_warp;
	uint32_t core_clock_khz;
	uint32_t memcpy_engine_count;
	uint32_t multiprocessor_count;
	uint32_t max_ipc;
	uint32_t max_warps_per_multiprocessor;
	uint32_t max_blocks_per_multiprocessor;
	uint32_t max_shared_bytes_per_multiprocessor;
	uint32_t max_registers_per_multiprocessor;
	uint32_t max_registers_per_block;
	uint32_t max_shared_bytes_per_block;
	uint32_t max_threads_per_block;
	uint32_t max_block[3];
	uint32_t max_grid[3];
	uint32_t compute_capability_major;
	uint32_t compute_capability_minor;
	uint32_t id;
	uint32_t ecc_enabled;
	uint8_t uuid[16];
	const char *name;
};

/* CONTEXT. */
struct cupti_activity_context {
	uint32_t kind;
	uint32_t context_id;
	uint32_t device_id;
	uint16_t compute_api_kind;
	uint16_t null_stream_id;
};

enum xt_cupti_object_kind {
	XT_CUPTI_OBJECT_PROCESS = 1,
	XT_CUPTI_OBJECT_THREAD = 2,
	XT_CUPTI_OBJECT_DEVICE = 3,
	XT_CUPTI_OBJECT_CONTEXT = 4,
	XT_CUPTI_OBJECT_STREAM = 5,
};

/* Process and thread, or device, context and stream, depending on the object kind. */
struct cupti_object_id {
	uint32_t device_or_process;
	uint32_t context_or_thread;
	uint32_t stream;
};

/* NAME. */
struct cupti_activity_name {
	uint32_t kind;
	uint32_t object_kind; /* enum xt_cupti_object_kind */
	struct cupti_object_id object;
	uint32_t padding0;
	const char *name;
};

/* MARKER (Marker2, since 8.0). */
struct cupti_activity_marker {
	uint32_t kind;
	uint32_t flags; /* XT_CUPTI_FLAG_MARKER_* */
	uint64_t timestamp_ns;
	uint32_t id;
	uint32_t object_kind;
	struct cupti_object_id object;
	uint32_t padding0;
	const char *name;
	const char *domain;
};

/* OVERHEAD. */
struct cupti_activity_overhead {
	uint32_t kind;
	uint32_t overhead_kind;
	uint32_t object_kind;
	struct cupti_object_id object;
	uint64_t start_ns;
	uint64_t end_ns;
};

/* EXTERNAL_CORRELATION. */
struct cupti_activity_external_correlation {
	uint32_t kind;
	uint32_t external_kind;
	uint64_t external_id;
	uint32_t correlation_id;
	uint32_t reserved0;
};

enum xt_cupti_flag {
	XT_CUPTI_FLAG_ASYNC = 1 << 0, /* of MEMCPY and MEMSET */
	XT_CUPTI_FLAG_MARKER_INSTANTANEOUS = 1 << 0,
	XT_CUPTI_FLAG_MARKER_START = 1 << 1,
	XT_CUPTI_FLAG_MARKER_END = 1 << 2,
};

enum xt_cupti_flush { XT_CUPTI_FLUSH_COMPLETED = 0, XT_CUPTI_FLUSH_FORCED = 1 << 0 };

enum xt_cupti_attribute {
	XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE = 0,	    /* size_t */
	XT_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2, /* size_t */
	XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER =
		5, /* uint8_t: the client zeroes its buffers, so CUPTI need not */
	XT_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE = 6, /* size_t */
	XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED = 8, /* uint8_t */
	XT_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER = 9, /* uint8_t; default 1 since 13.0 */
	XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS =
		10, /* size_t: memory for kernels in bodies of conditional nodes */
};

typedef void (*xt_cupti_callback)(void *userdata, uint32_t domain, uint32_t cbid,
				  const void *cbdata);

/*
 * The request runs on any application thread. *max_records_out = 0 means as many as fit. The buffer
 * must be 8-byte aligned. The completion runs on a CUPTI thread or on the flushing one. Its context
 * and stream are unused (NULL, 0).
 */
typedef void (*xt_cupti_buffer_requested)(uint8_t **buffer_out, size_t *bytes_out,
					  size_t *max_records_out);
typedef void (*xt_cupti_buffer_completed)(void *context, uint32_t stream_id, uint8_t *buffer,
					  size_t bytes, size_t valid_bytes);

#define XT_CUPTI_SUBSCRIBER_NAME_BYTES 64

/* Parameters of cuptiSubscribe_v2(), since 13.0. Later versions append fields. */
struct cupti_subscriber_params {
	size_t struct_bytes;
	const char *name;    /* name of the new subscriber, or NULL */
	char *holder;	     /* out: the current subscriber, if it is the reason for a failure */
	size_t holder_bytes; /* at least XT_CUPTI_SUBSCRIBER_NAME_BYTES */
};

/* Returns nanoseconds. Runs on any thread. */
typedef uint64_t (*xt_cupti_timestamp)(void);

/*
 * The entry points: X(need, name, arguments). All return an enum xt_cupti_result. need is REQUIRED
 * if tracing is impossible without it, or OPTIONAL if the pointer may be NULL.
 */
#define CUPTI_FUNCTIONS(X)                                                                         \
	X(REQUIRED, cuptiGetVersion, (uint32_t * version_out))                                     \
	X(REQUIRED, cuptiSubscribe,                                                                \
	  (void **subscriber_out, xt_cupti_callback callback, void *userdata))                     \
	X(OPTIONAL, cuptiSubscribe_v2,                                                             \
	  (void **subscriber_out, xt_cupti_callback callback, void *userdata,                      \
	   struct cupti_subscriber_params *params))                                                \
	X(REQUIRED, cuptiUnsubscribe, (void *subscriber))                                          \
	X(REQUIRED, cuptiEnableCallback,                                                           \
	  (uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid))                     \
	X(REQUIRED, cuptiActivityEnable, (uint32_t kind))                                          \
	X(REQUIRED, cuptiActivityDisable, (uint32_t kind))                                         \
	X(REQUIRED, cuptiActivityRegisterCallbacks,                                                \
	  (xt_cupti_buffer_requested requested, xt_cupti_buffer_completed completed))              \
	X(REQUIRED, cuptiActivityFlushAll, (uint32_t flag))                                        \
	X(REQUIRED, cuptiActivityGetNextRecord,                                                    \
	  (uint8_t * buffer, size_t valid_bytes, struct cupti_activity * *record_inout))           \
	X(OPTIONAL, cuptiGetResultString, (uint32_t result, const char **text_out))                \
	X(OPTIONAL, cuptiGetCallbackName, (uint32_t domain, uint32_t cbid, const char **name_out)) \
	X(REQUIRED, cuptiActivityRegisterTimestampCallback, (xt_cupti_timestamp timestamp))        \
	X(OPTIONAL, cuptiActivityFlushPeriod, (uint32_t period_ms))                                \
	X(OPTIONAL, cuptiActivityGetNumDroppedRecords,                                             \
	  (void *context, uint32_t stream_id, size_t *dropped_out))                                \
	X(OPTIONAL, cuptiActivityGetAttribute,                                                     \
	  (uint32_t attribute, size_t * value_bytes, void *value_out))                             \
	X(OPTIONAL, cuptiActivitySetAttribute,                                                     \
	  (uint32_t attribute, size_t * value_bytes, void *value))                                 \
	X(OPTIONAL, cuptiGetTimestamp, (uint64_t * timestamp_out))                                 \
	X(OPTIONAL, cuptiGetGraphNodeId, (void *node, uint64_t *id_out))                           \
	X(OPTIONAL, cuptiGetGraphId, (void *graph, uint32_t *id_out))                              \
	X(OPTIONAL, cuptiGetGraphExecId, (void *graph_exec, uint32_t *id_out))                     \
	X(OPTIONAL, cuptiGetStreamIdEx,                                                            \
	  (void *context, void *stream, uint8_t per_thread_stream, uint32_t *id_out))              \
	X(OPTIONAL, cuptiGetContextId, (void *context, uint32_t *id_out))                          \
	X(OPTIONAL, cuptiGetDeviceId, (void *context, uint32_t *id_out))                           \
	X(OPTIONAL, cuptiGetLastError, (void))

#endif
