/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite: checks of what xtrace relies on in CUPTI. They pass on a real GPU and on
 * the simulated one. Building needs no CUDA header or library: libcuda and libcupti are opened by
 * path, and kernels are PTX text.
 *
 * One client (client.c) stores everything that CUPTI reports. A check clears these notes, calls the
 * driver, and examines them.
 */
#ifndef XTRACE_CONFORMANCE_H
#define XTRACE_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda.h>

#include "cuda_abi/cupti_abi.h"

#define DRIVER_FUNCTIONS(X)                                                                        \
	X(cuInit)                                                                                  \
	X(cuDeviceGet)                                                                             \
	X(cuDeviceCanAccessPeer)                                                                   \
	X(cuCtxEnablePeerAccess)                                                                   \
	X(cuCtxDisablePeerAccess)                                                                  \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetName)                                                                         \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuDevicePrimaryCtxRelease_v2)                                                            \
	X(cuCtxSetCurrent)                                                                         \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxSynchronize)                                                                        \
	X(cuCtxCreate_v2)                                                                          \
	X(cuCtxDestroy_v2)                                                                         \
	X(cuModuleLoadData)                                                                        \
	X(cuModuleUnload)                                                                          \
	X(cuModuleGetFunction)                                                                     \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemFree_v2)                                                                            \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemFreeAsync)                                                                          \
	X(cuPointerGetAttribute)                                                                   \
	X(cuMemPoolGetAttribute)                                                                   \
	X(cuMemcpyHtoD_v2)                                                                         \
	X(cuMemcpyDtoH_v2)                                                                         \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemcpyPeerAsync)                                                                       \
	X(cuMemsetD32_v2)                                                                          \
	X(cuStreamCreate)                                                                          \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamWaitEvent)                                                                       \
	X(cuStreamBeginCapture_v2)                                                                 \
	X(cuStreamEndCapture)                                                                      \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventRecord)                                                                           \
	X(cuLaunchKernel)                                                                          \
	X(cuLaunchKernel_ptsz)                                                                     \
	X(cuLaunchKernelEx)                                                                        \
	X(cuLaunchKernelEx_ptsz)                                                                   \
	X(cuLaunchCooperativeKernel)                                                               \
	X(cuLaunchCooperativeKernel_ptsz)                                                          \
	X(cuGraphCreate)                                                                           \
	X(cuGraphDestroy)                                                                          \
	X(cuGraphAddKernelNode_v2)                                                                 \
	X(cuGraphAddChildGraphNode)                                                                \
	X(cuGraphExecKernelNodeSetParams_v2)                                                       \
	X(cuGraphExecUpdate_v2)                                                                    \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphLaunch)                                                                           \
	X(cuGraphLaunch_ptsz)                                                                      \
	X(cuGraphExecDestroy)

/* NULL with older drivers. */
#define NEWER_DRIVER_FUNCTIONS(X)                                                                  \
	X(cuGraphConditionalHandleCreate)                                                          \
	X(cuGraphAddNode_v2)

struct driver {
#define FIELD(name) __typeof__(&name) name;
	DRIVER_FUNCTIONS(FIELD)
	NEWER_DRIVER_FUNCTIONS(FIELD)
#undef FIELD
	CUcontext context; /* the primary one, current in every thread of the suite */
	CUmodule module;
	CUfunction empty; /* void empty() */
	CUfunction spin;  /* void spin(unsigned): runs for that many clock cycles */
};

struct cupti {
#define FIELD(need, name, arguments) int(*name) arguments;
	CUPTI_FUNCTIONS(FIELD)
#undef FIELD
	void *subscriber;
	const char *path;
};

extern struct driver driver;
extern struct cupti cupti;

#define EMPTY_NAME "_Z5emptyv"
#define SPIN_NAME  "_Z4spinj"

/* client.c: notes in the order of their creation. They are complete once the threads are joined. */
#define NAME_BYTES 64
enum {					  /* callback ids of the driver API domain */
       INSTANTIATE_WITH_FLAGS = 643,	  /* cuGraphInstantiateWithFlags */
       EXEC_KERNEL_NODE_SET_PARAMS = 692, /* cuGraphExecKernelNodeSetParams_v2 */
};
struct note {
	uint32_t domain;
	uint32_t cbid;
	int tid;
	uint64_t time_ns;
	/* API domains */
	uint32_t site;
	uint32_t correlation_id;
	uint32_t context_id;
	uint64_t slot; /* *correlation_data */
	bool has_slot;
	CUresult result; /* at EXIT */
	char function_name[NAME_BYTES];
	char symbol_name[NAME_BYTES]; /* empty if NULL */
	const void *arguments[2];     /* of EXEC_KERNEL_NODE_SET_PARAMS */
	/* resource domain */
	uint64_t node_id;
	uint64_t original_node_id;
	uint32_t node_type;
};
struct kernel_note {
	struct cupti_activity_kernel record;
	char name[NAME_BYTES];
};
struct buffer_note {
	uint64_t requested_count;
	uint64_t completed_count;
	uint64_t strange_count;	  /* returned without a request, or with more data than fits */
	uint64_t unparsed_count;  /* records that GetNextRecord() cannot skip */
	uint64_t unaligned_count; /* records not aligned to 8 bytes */
	int request_tid;	  /* of the last request */
};

/* Opens libcupti, subscribes, registers everything and enables kernel records. 0 or -1. */
int client_open(const char *path);
void client_clear(void);
/* Waits for all GPU work, and until a flush returns no new records. */
void client_settle(void);
void client_take_kernels(void); /* flushes complete records without waiting */
void client_enable(uint32_t domain, uint32_t cbid, bool enable);
/*
 * From now on, the callbacks of cuGraphInstantiateWithFlags and cuGraphLaunch enable or disable a
 * kind of records for the duration of the call. XT_CUPTI_ACTIVITY_INVALID ends that.
 */
void client_gate(uint32_t kind, bool enable);
void client_set_buffer_bytes(size_t bytes);
uint64_t client_now_ns(void);

size_t client_note_count(void);
const struct note *client_note(size_t index);
size_t client_kernel_count(void);
const struct kernel_note *client_kernel(size_t index);
struct buffer_note client_buffers(void);
size_t client_memcpy_count(void);
const struct cupti_activity_memcpy *client_memcpy(size_t index);
size_t client_peer_copy_count(void);
const struct cupti_activity_memcpy_peer *client_peer_copy(size_t index);
size_t client_memset_count(void);
const struct cupti_activity_memset *client_memset(size_t index);
size_t client_graph_count(void);
const struct cupti_activity_graph_trace *client_graph(size_t index);
size_t client_memory_count(void);
const struct cupti_activity_memory *client_memory(size_t index);

/* Returns the index-th matching note since the last clear, or NULL. */
const struct note *find_note(uint32_t domain, uint32_t cbid, uint32_t site, size_t index);
size_t count_notes(uint32_t domain, uint32_t cbid, uint32_t site);
/* Returns the only kernel with that correlation id. NULL if there is none, or more than one. */
const struct kernel_note *find_kernel(uint32_t correlation_id);

/* driver.c */
int driver_open(void);	/* 0, or -1 with a message; makes no driver call */
int driver_start(void); /* from cuInit() to loading the kernels */
/* Launches on the stream and returns the driver's result. */
CUresult launch_empty(CUstream stream);
CUresult launch_spin(CUstream stream, unsigned int cycles);
/* Returns a variable of the probe, or -1 if the driver did not load it. */
int driver_probed(const char *name);

/* graph_build.c: each add_* adds a node after the node at *tip, and stores the new node there. */
CUDA_KERNEL_NODE_PARAMS empty_node(void);
/* With a grid of `width` blocks. */
bool add_kernel(CUgraph graph, CUgraphNode *tip, unsigned int width);
bool add_child(CUgraph graph, CUgraphNode *tip, CUgraph child);
/*
 * Returns the bodies, in the driver's memory, or NULL. `value` is that of the condition at each
 * launch. handle_out may be NULL. The driver's functions are missing before 12.4.
 */
CUgraph *add_condition(CUgraph graph, CUgraphNode *tip, CUgraphConditionalNodeType type,
		       unsigned int size, unsigned int value, CUgraphConditionalHandle *handle_out);
/* Prints a line if the driver has no conditional nodes. */
bool has_conditions(void);

/* A check returns false if an expect() in it fails. */
struct check {
	const char *name;
	bool (*run)(void);
};
extern const struct check callback_checks[];
extern const struct check record_checks[];
extern const struct check buffer_checks[];
extern const struct check graph_checks[];
extern const struct check graph_trace_checks[];
extern const struct check device_checks[];

#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("  %s:%d: expected: %s\n", __FILE_NAME__, __LINE__, #condition);    \
			return false;                                                              \
		}                                                                                  \
	} while (0)

#endif
