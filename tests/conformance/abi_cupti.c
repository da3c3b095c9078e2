/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds cuda_abi/cupti_abi.h against the CUPTI headers of an installed toolkit, at compile time:
 * every constant, every size, every offset. Built only where the toolkit is; there is no code.
 */
#include <cuda.h>
#include <cupti.h>

#include "cuda_abi/cupti_abi.h"

#define SAME_VALUE(ours, theirs)                                                                   \
	_Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
#define SAME_SIZE(ours, theirs)                                                                    \
	_Static_assert(sizeof(struct ours) == sizeof(theirs), #ours " has the size of " #theirs)
#define SAME_PLACE(ours, our_field, theirs, their_field)                                           \
	_Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field) &&        \
			       sizeof(((struct ours *)0)->our_field) ==                            \
				       sizeof(((theirs *)0)->their_field),                         \
		       #ours "." #our_field " is " #theirs "." #their_field)

/* enum xt_cupti_result */
SAME_VALUE(XT_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME_VALUE(XT_CUPTI_ERROR_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
SAME_VALUE(XT_CUPTI_ERROR_INVALID_DEVICE, CUPTI_ERROR_INVALID_DEVICE);
SAME_VALUE(XT_CUPTI_ERROR_INVALID_CONTEXT, CUPTI_ERROR_INVALID_CONTEXT);
SAME_VALUE(XT_CUPTI_ERROR_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME_VALUE(XT_CUPTI_ERROR_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME_VALUE(XT_CUPTI_ERROR_HARDWARE, CUPTI_ERROR_HARDWARE);
SAME_VALUE(XT_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
SAME_VALUE(XT_CUPTI_ERROR_API_NOT_IMPLEMENTED, CUPTI_ERROR_API_NOT_IMPLEMENTED);
SAME_VALUE(XT_CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_VALUE(XT_CUPTI_ERROR_NOT_READY, CUPTI_ERROR_NOT_READY);
SAME_VALUE(XT_CUPTI_ERROR_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME_VALUE(XT_CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME_VALUE(XT_CUPTI_ERROR_QUEUE_EMPTY, CUPTI_ERROR_QUEUE_EMPTY);
SAME_VALUE(XT_CUPTI_ERROR_INVALID_STREAM, CUPTI_ERROR_INVALID_STREAM);
SAME_VALUE(XT_CUPTI_ERROR_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME_VALUE(XT_CUPTI_ERROR_DISABLED, CUPTI_ERROR_DISABLED);
SAME_VALUE(XT_CUPTI_ERROR_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME_VALUE(XT_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
	   CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_VALUE(XT_CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
	   CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(XT_CUPTI_ERROR_UNKNOWN, CUPTI_ERROR_UNKNOWN);

/* enum xt_cupti_domain */
SAME_VALUE(XT_CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_VALUE(XT_CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME_VALUE(XT_CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME_VALUE(XT_CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CB_DOMAIN_SYNCHRONIZE);
SAME_VALUE(XT_CUPTI_CB_DOMAIN_NVTX, CUPTI_CB_DOMAIN_NVTX);
SAME_VALUE(XT_CUPTI_CB_DOMAIN_STATE, CUPTI_CB_DOMAIN_STATE);

/* enum xt_cupti_site */
SAME_VALUE(XT_CUPTI_API_ENTER, CUPTI_API_ENTER);
SAME_VALUE(XT_CUPTI_API_EXIT, CUPTI_API_EXIT);

/* enum xt_cupti_resource */
SAME_VALUE(XT_CUPTI_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME_VALUE(XT_CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING,
	   CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED);
SAME_VALUE(XT_CUPTI_RESOURCE_STREAM_DESTROY_STARTING, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_CU_INIT_FINISHED, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
SAME_VALUE(XT_CUPTI_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME_VALUE(XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_MODULE_PROFILED, CUPTI_CBID_RESOURCE_MODULE_PROFILED);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPH_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPH_CLONED, CUPTI_CBID_RESOURCE_GRAPH_CLONED);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING,
	   CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING,
	   CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED,
	   CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING,
	   CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHEXEC_CREATE_STARTING,
	   CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
	   CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
SAME_VALUE(XT_CUPTI_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

/* enum xt_cupti_node_type */
SAME_VALUE(XT_CUPTI_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_VALUE(XT_CUPTI_NODE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME_VALUE(XT_CUPTI_NODE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET);
SAME_VALUE(XT_CUPTI_NODE_HOST, CU_GRAPH_NODE_TYPE_HOST);
SAME_VALUE(XT_CUPTI_NODE_GRAPH, CU_GRAPH_NODE_TYPE_GRAPH);
SAME_VALUE(XT_CUPTI_NODE_EMPTY, CU_GRAPH_NODE_TYPE_EMPTY);

/* enum xt_cupti_activity_kind */
SAME_VALUE(XT_CUPTI_ACTIVITY_INVALID, CUPTI_ACTIVITY_KIND_INVALID);
SAME_VALUE(XT_CUPTI_ACTIVITY_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_VALUE(XT_CUPTI_ACTIVITY_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_VALUE(XT_CUPTI_ACTIVITY_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME_VALUE(XT_CUPTI_ACTIVITY_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_VALUE(XT_CUPTI_ACTIVITY_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_VALUE(XT_CUPTI_ACTIVITY_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
SAME_VALUE(XT_CUPTI_ACTIVITY_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
SAME_VALUE(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_VALUE(XT_CUPTI_ACTIVITY_NAME, CUPTI_ACTIVITY_KIND_NAME);
SAME_VALUE(XT_CUPTI_ACTIVITY_MARKER, CUPTI_ACTIVITY_KIND_MARKER);
SAME_VALUE(XT_CUPTI_ACTIVITY_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME_VALUE(XT_CUPTI_ACTIVITY_CDP_KERNEL, CUPTI_ACTIVITY_KIND_CDP_KERNEL);
SAME_VALUE(XT_CUPTI_ACTIVITY_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_VALUE(XT_CUPTI_ACTIVITY_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME_VALUE(XT_CUPTI_ACTIVITY_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_VALUE(XT_CUPTI_ACTIVITY_INTERNAL_LAUNCH_API, CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API);
SAME_VALUE(XT_CUPTI_ACTIVITY_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME_VALUE(XT_CUPTI_ACTIVITY_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);

/* enum xt_cupti_copy_kind */
SAME_VALUE(XT_CUPTI_COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME_VALUE(XT_CUPTI_COPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME_VALUE(XT_CUPTI_COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME_VALUE(XT_CUPTI_COPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME_VALUE(XT_CUPTI_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);

/* enum xt_cupti_memory_kind */
SAME_VALUE(XT_CUPTI_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME_VALUE(XT_CUPTI_MEMORY_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME_VALUE(XT_CUPTI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME_VALUE(XT_CUPTI_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);

/* enum xt_cupti_object_kind */
SAME_VALUE(XT_CUPTI_OBJECT_PROCESS, CUPTI_ACTIVITY_OBJECT_PROCESS);
SAME_VALUE(XT_CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME_VALUE(XT_CUPTI_OBJECT_DEVICE, CUPTI_ACTIVITY_OBJECT_DEVICE);
SAME_VALUE(XT_CUPTI_OBJECT_CONTEXT, CUPTI_ACTIVITY_OBJECT_CONTEXT);
SAME_VALUE(XT_CUPTI_OBJECT_STREAM, CUPTI_ACTIVITY_OBJECT_STREAM);

/* enum xt_cupti_flag */
SAME_VALUE(XT_CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
SAME_VALUE(XT_CUPTI_FLAG_MARKER_INSTANTANEOUS, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS);
SAME_VALUE(XT_CUPTI_FLAG_MARKER_START, CUPTI_ACTIVITY_FLAG_MARKER_START);
SAME_VALUE(XT_CUPTI_FLAG_MARKER_END, CUPTI_ACTIVITY_FLAG_MARKER_END);

/* enum xt_cupti_flush */
SAME_VALUE(XT_CUPTI_FLUSH_COMPLETED, CUPTI_ACTIVITY_FLAG_NONE);
SAME_VALUE(XT_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

/* enum xt_cupti_attribute */
SAME_VALUE(XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME_VALUE(XT_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME_VALUE(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
	   CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME_VALUE(XT_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE,
	   CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);
SAME_VALUE(XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED,
	   CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
SAME_VALUE(XT_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER,
	   CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);

SAME_VALUE(XT_CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);

#define CHECK_DRIVER_CBID(name, id, class) SAME_VALUE(id, CUPTI_DRIVER_TRACE_CBID_##name);
XT_CUPTI_DRIVER_LAUNCHES(CHECK_DRIVER_CBID)
#define CHECK_RUNTIME_CBID(name, id, class) SAME_VALUE(id, CUPTI_RUNTIME_TRACE_CBID_##name);
XT_CUPTI_RUNTIME_LAUNCHES(CHECK_RUNTIME_CBID)

/* struct cupti_callback_data */
SAME_SIZE(cupti_callback_data, CUpti_CallbackData);
SAME_PLACE(cupti_callback_data, site, CUpti_CallbackData, callbackSite);
SAME_PLACE(cupti_callback_data, function_name, CUpti_CallbackData, functionName);
SAME_PLACE(cupti_callback_data, function_params, CUpti_CallbackData, functionParams);
SAME_PLACE(cupti_callback_data, return_value, CUpti_CallbackData, functionReturnValue);
SAME_PLACE(cupti_callback_data, symbol_name, CUpti_CallbackData, symbolName);
SAME_PLACE(cupti_callback_data, context, CUpti_CallbackData, context);
SAME_PLACE(cupti_callback_data, context_id, CUpti_CallbackData, contextUid);
SAME_PLACE(cupti_callback_data, correlation_data, CUpti_CallbackData, correlationData);
SAME_PLACE(cupti_callback_data, correlation_id, CUpti_CallbackData, correlationId);

/* struct cupti_resource_data */
SAME_SIZE(cupti_resource_data, CUpti_ResourceData);
SAME_PLACE(cupti_resource_data, context, CUpti_ResourceData, context);
SAME_PLACE(cupti_resource_data, stream, CUpti_ResourceData, resourceHandle);
SAME_PLACE(cupti_resource_data, descriptor, CUpti_ResourceData, resourceDescriptor);

/* struct cupti_module_data */
SAME_SIZE(cupti_module_data, CUpti_ModuleResourceData);
SAME_PLACE(cupti_module_data, module_id, CUpti_ModuleResourceData, moduleId);
SAME_PLACE(cupti_module_data, cubin_bytes, CUpti_ModuleResourceData, cubinSize);
SAME_PLACE(cupti_module_data, cubin, CUpti_ModuleResourceData, pCubin);

/* struct cupti_graph_data */
SAME_SIZE(cupti_graph_data, CUpti_GraphData);
SAME_PLACE(cupti_graph_data, graph, CUpti_GraphData, graph);
SAME_PLACE(cupti_graph_data, original_graph, CUpti_GraphData, originalGraph);
SAME_PLACE(cupti_graph_data, node, CUpti_GraphData, node);
SAME_PLACE(cupti_graph_data, original_node, CUpti_GraphData, originalNode);
SAME_PLACE(cupti_graph_data, node_type, CUpti_GraphData, nodeType);
SAME_PLACE(cupti_graph_data, dependency, CUpti_GraphData, dependency);
SAME_PLACE(cupti_graph_data, graph_exec, CUpti_GraphData, graphExec);

#if CUPTI_API_VERSION >= 130000
/* struct cupti_activity_kernel */
SAME_SIZE(cupti_activity_kernel, CUpti_ActivityKernel10);
SAME_PLACE(cupti_activity_kernel, kind, CUpti_ActivityKernel10, kind);
SAME_PLACE(cupti_activity_kernel, cache_config, CUpti_ActivityKernel10, cacheConfig);
SAME_PLACE(cupti_activity_kernel, shared_memory_config, CUpti_ActivityKernel10, sharedMemoryConfig);
SAME_PLACE(cupti_activity_kernel, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
SAME_PLACE(cupti_activity_kernel, partitioned_cache_requested, CUpti_ActivityKernel10,
	   partitionedGlobalCacheRequested);
SAME_PLACE(cupti_activity_kernel, partitioned_cache_executed, CUpti_ActivityKernel10,
	   partitionedGlobalCacheExecuted);
SAME_PLACE(cupti_activity_kernel, start_ns, CUpti_ActivityKernel10, start);
SAME_PLACE(cupti_activity_kernel, end_ns, CUpti_ActivityKernel10, end);
SAME_PLACE(cupti_activity_kernel, completed_ns, CUpti_ActivityKernel10, completed);
SAME_PLACE(cupti_activity_kernel, device_id, CUpti_ActivityKernel10, deviceId);
SAME_PLACE(cupti_activity_kernel, context_id, CUpti_ActivityKernel10, contextId);
SAME_PLACE(cupti_activity_kernel, stream_id, CUpti_ActivityKernel10, streamId);
SAME_PLACE(cupti_activity_kernel, static_shared_bytes, CUpti_ActivityKernel10, staticSharedMemory);
SAME_PLACE(cupti_activity_kernel, dynamic_shared_bytes, CUpti_ActivityKernel10,
	   dynamicSharedMemory);
SAME_PLACE(cupti_activity_kernel, local_bytes_per_thread, CUpti_ActivityKernel10,
	   localMemoryPerThread);
SAME_PLACE(cupti_activity_kernel, local_bytes_total, CUpti_ActivityKernel10, localMemoryTotal);
SAME_PLACE(cupti_activity_kernel, correlation_id, CUpti_ActivityKernel10, correlationId);
SAME_PLACE(cupti_activity_kernel, grid_id, CUpti_ActivityKernel10, gridId);
SAME_PLACE(cupti_activity_kernel, name, CUpti_ActivityKernel10, name);
SAME_PLACE(cupti_activity_kernel, grid[0], CUpti_ActivityKernel10, gridX);
SAME_PLACE(cupti_activity_kernel, grid[1], CUpti_ActivityKernel10, gridY);
SAME_PLACE(cupti_activity_kernel, grid[2], CUpti_ActivityKernel10, gridZ);
SAME_PLACE(cupti_activity_kernel, block[0], CUpti_ActivityKernel10, blockX);
SAME_PLACE(cupti_activity_kernel, block[1], CUpti_ActivityKernel10, blockY);
SAME_PLACE(cupti_activity_kernel, block[2], CUpti_ActivityKernel10, blockZ);
SAME_PLACE(cupti_activity_kernel, reserved0, CUpti_ActivityKernel10, reserved0);
SAME_PLACE(cupti_activity_kernel, queued_ns, CUpti_ActivityKernel10, queued);
SAME_PLACE(cupti_activity_kernel, submitted_ns, CUpti_ActivityKernel10, submitted);
SAME_PLACE(cupti_activity_kernel, launch_type, CUpti_ActivityKernel10, launchType);
SAME_PLACE(cupti_activity_kernel, carveout_is_requested, CUpti_ActivityKernel10,
	   isSharedMemoryCarveoutRequested);
SAME_PLACE(cupti_activity_kernel, carveout_requested, CUpti_ActivityKernel10,
	   sharedMemoryCarveoutRequested);
SAME_PLACE(cupti_activity_kernel, shared_executed_bytes, CUpti_ActivityKernel10,
	   sharedMemoryExecuted);
SAME_PLACE(cupti_activity_kernel, graph_node_id, CUpti_ActivityKernel10, graphNodeId);
SAME_PLACE(cupti_activity_kernel, shared_limit_config, CUpti_ActivityKernel10, shmemLimitConfig);
SAME_PLACE(cupti_activity_kernel, graph_id, CUpti_ActivityKernel10, graphId);
SAME_PLACE(cupti_activity_kernel, access_policy_window, CUpti_ActivityKernel10,
	   pAccessPolicyWindow);
SAME_PLACE(cupti_activity_kernel, channel_id, CUpti_ActivityKernel10, channelID);
SAME_PLACE(cupti_activity_kernel, channel_type, CUpti_ActivityKernel10, channelType);
SAME_PLACE(cupti_activity_kernel, cluster[0], CUpti_ActivityKernel10, clusterX);
SAME_PLACE(cupti_activity_kernel, cluster[1], CUpti_ActivityKernel10, clusterY);
SAME_PLACE(cupti_activity_kernel, cluster[2], CUpti_ActivityKernel10, clusterZ);
SAME_PLACE(cupti_activity_kernel, cluster_scheduling_policy, CUpti_ActivityKernel10,
	   clusterSchedulingPolicy);
SAME_PLACE(cupti_activity_kernel, local_bytes_total_v2, CUpti_ActivityKernel10,
	   localMemoryTotal_v2);
SAME_PLACE(cupti_activity_kernel, max_potential_cluster_size, CUpti_ActivityKernel10,
	   maxPotentialClusterSize);
SAME_PLACE(cupti_activity_kernel, max_active_clusters, CUpti_ActivityKernel10, maxActiveClusters);
SAME_PLACE(cupti_activity_kernel, is_device_launched, CUpti_ActivityKernel10, isDeviceLaunched);

/* struct cupti_activity_memcpy */
SAME_SIZE(cupti_activity_memcpy, CUpti_ActivityMemcpy6);
SAME_PLACE(cupti_activity_memcpy, copy_count, CUpti_ActivityMemcpy6, copyCount);

/* struct cupti_activity_memset */
SAME_SIZE(cupti_activity_memset, CUpti_ActivityMemset4);

#endif

/* What is read of kernel records stands at the same place in every version. */
#define CHECK_KERNEL4(type)                                                                        \
	SAME_PLACE(cupti_activity_kernel, kind, type, kind);                                       \
	SAME_PLACE(cupti_activity_kernel, cache_config, type, cacheConfig);                        \
	SAME_PLACE(cupti_activity_kernel, shared_memory_config, type, sharedMemoryConfig);         \
	SAME_PLACE(cupti_activity_kernel, registers_per_thread, type, registersPerThread);         \
	SAME_PLACE(cupti_activity_kernel, partitioned_cache_requested, type,                       \
		   partitionedGlobalCacheRequested);                                               \
	SAME_PLACE(cupti_activity_kernel, partitioned_cache_executed, type,                        \
		   partitionedGlobalCacheExecuted);                                                \
	SAME_PLACE(cupti_activity_kernel, start_ns, type, start);                                  \
	SAME_PLACE(cupti_activity_kernel, end_ns, type, end);                                      \
	SAME_PLACE(cupti_activity_kernel, completed_ns, type, completed);                          \
	SAME_PLACE(cupti_activity_kernel, device_id, type, deviceId);                              \
	SAME_PLACE(cupti_activity_kernel, context_id, type, contextId);                            \
	SAME_PLACE(cupti_activity_kernel, stream_id, type, streamId);                              \
	SAME_PLACE(cupti_activity_kernel, static_shared_bytes, type, staticSharedMemory);          \
	SAME_PLACE(cupti_activity_kernel, dynamic_shared_bytes, type, dynamicSharedMemory);        \
	SAME_PLACE(cupti_activity_kernel, local_bytes_per_thread, type, localMemoryPerThread);     \
	SAME_PLACE(cupti_activity_kernel, local_bytes_total, type, localMemoryTotal);              \
	SAME_PLACE(cupti_activity_kernel, correlation_id, type, correlationId);                    \
	SAME_PLACE(cupti_activity_kernel, grid_id, type, gridId);                                  \
	SAME_PLACE(cupti_activity_kernel, name, type, name);                                       \
	SAME_PLACE(cupti_activity_kernel, grid[0], type, gridX);                                   \
	SAME_PLACE(cupti_activity_kernel, grid[1], type, gridY);                                   \
	SAME_PLACE(cupti_activity_kernel, grid[2], type, gridZ);                                   \
	SAME_PLACE(cupti_activity_kernel, block[0], type, blockX);                                 \
	SAME_PLACE(cupti_activity_kernel, block[1], type, blockY);                                 \
	SAME_PLACE(cupti_activity_kernel, block[2], type, blockZ)

#define CHECK_KERNEL5(type)                                                                        \
	CHECK_KERNEL4(type);                                                                       \
	SAME_PLACE(cupti_activity_kernel, graph_node_id, type, graphNodeId)

CHECK_KERNEL4(CUpti_ActivityKernel4);
CHECK_KERNEL5(CUpti_ActivityKernel5);
CHECK_KERNEL5(CUpti_ActivityKernel6);
CHECK_KERNEL5(CUpti_ActivityKernel7);
CHECK_KERNEL5(CUpti_ActivityKernel8);
CHECK_KERNEL5(CUpti_ActivityKernel9);

#define CHECK_MEMCPY(type)                                                                         \
	SAME_PLACE(cupti_activity_memcpy, kind, type, kind);                                       \
	SAME_PLACE(cupti_activity_memcpy, copy_kind, type, copyKind);                              \
	SAME_PLACE(cupti_activity_memcpy, source_kind, type, srcKind);                             \
	SAME_PLACE(cupti_activity_memcpy, destination_kind, type, dstKind);                        \
	SAME_PLACE(cupti_activity_memcpy, flags, type, flags);                                     \
	SAME_PLACE(cupti_activity_memcpy, bytes, type, bytes);                                     \
	SAME_PLACE(cupti_activity_memcpy, start_ns, type, start);                                  \
	SAME_PLACE(cupti_activity_memcpy, end_ns, type, end);                                      \
	SAME_PLACE(cupti_activity_memcpy, device_id, type, deviceId);                              \
	SAME_PLACE(cupti_activity_memcpy, context_id, type, contextId);                            \
	SAME_PLACE(cupti_activity_memcpy, stream_id, type, streamId);                              \
	SAME_PLACE(cupti_activity_memcpy, correlation_id, type, correlationId)

CHECK_MEMCPY(CUpti_ActivityMemcpy);
CHECK_MEMCPY(CUpti_ActivityMemcpy3);
CHECK_MEMCPY(CUpti_ActivityMemcpy4);
CHECK_MEMCPY(CUpti_ActivityMemcpy5);
SAME_PLACE(cupti_activity_memcpy, graph_node_id, CUpti_ActivityMemcpy4, graphNodeId);
SAME_PLACE(cupti_activity_memcpy, graph_node_id, CUpti_ActivityMemcpy5, graphNodeId);

#define CHECK_MEMSET(type)                                                                         \
	SAME_PLACE(cupti_activity_memset, kind, type, kind);                                       \
	SAME_PLACE(cupti_activity_memset, value, type, value);                                     \
	SAME_PLACE(cupti_activity_memset, bytes, type, bytes);                                     \
	SAME_PLACE(cupti_activity_memset, start_ns, type, start);                                  \
	SAME_PLACE(cupti_activity_memset, end_ns, type, end);                                      \
	SAME_PLACE(cupti_activity_memset, device_id, type, deviceId);                              \
	SAME_PLACE(cupti_activity_memset, context_id, type, contextId);                            \
	SAME_PLACE(cupti_activity_memset, stream_id, type, streamId);                              \
	SAME_PLACE(cupti_activity_memset, correlation_id, type, correlationId);                    \
	SAME_PLACE(cupti_activity_memset, flags, type, flags);                                     \
	SAME_PLACE(cupti_activity_memset, memory_kind, type, memoryKind)

CHECK_MEMSET(CUpti_ActivityMemset);
CHECK_MEMSET(CUpti_ActivityMemset2);
CHECK_MEMSET(CUpti_ActivityMemset3);
SAME_PLACE(cupti_activity_memset, graph_node_id, CUpti_ActivityMemset3, graphNodeId);

/* struct cupti_activity_api */
SAME_SIZE(cupti_activity_api, CUpti_ActivityAPI);
SAME_PLACE(cupti_activity_api, kind, CUpti_ActivityAPI, kind);
SAME_PLACE(cupti_activity_api, cbid, CUpti_ActivityAPI, cbid);
SAME_PLACE(cupti_activity_api, start_ns, CUpti_ActivityAPI, start);
SAME_PLACE(cupti_activity_api, end_ns, CUpti_ActivityAPI, end);
SAME_PLACE(cupti_activity_api, process_id, CUpti_ActivityAPI, processId);
SAME_PLACE(cupti_activity_api, thread_id, CUpti_ActivityAPI, threadId);
SAME_PLACE(cupti_activity_api, correlation_id, CUpti_ActivityAPI, correlationId);
SAME_PLACE(cupti_activity_api, return_value, CUpti_ActivityAPI, returnValue);

#define CHECK_DEVICE(type)                                                                         \
	SAME_PLACE(cupti_activity_device, kind, type, kind);                                       \
	SAME_PLACE(cupti_activity_device, flags, type, flags);                                     \
	SAME_PLACE(cupti_activity_device, global_memory_bandwidth_kbps, type,                      \
		   globalMemoryBandwidth);                                                         \
	SAME_PLACE(cupti_activity_device, global_memory_bytes, type, globalMemorySize);            \
	SAME_PLACE(cupti_activity_device, constant_memory_bytes, type, constantMemorySize);        \
	SAME_PLACE(cupti_activity_device, l2_cache_bytes, type, l2CacheSize);                      \
	SAME_PLACE(cupti_activity_device, threads_per_warp, type, numThreadsPerWarp);              \
	SAME_PLACE(cupti_activity_device, core_clock_khz, type, coreClockRate);                    \
	SAME_PLACE(cupti_activity_device, memcpy_engine_count, type, numMemcpyEngines);            \
	SAME_PLACE(cupti_activity_device, multiprocessor_count, type, numMultiprocessors);         \
	SAME_PLACE(cupti_activity_device, max_ipc, type, maxIPC);                                  \
	SAME_PLACE(cupti_activity_device, max_warps_per_multiprocessor, type,                      \
		   maxWarpsPerMultiprocessor);                                                     \
	SAME_PLACE(cupti_activity_device, max_blocks_per_multiprocessor, type,                     \
		   maxBlocksPerMultiprocessor);                                                    \
	SAME_PLACE(cupti_activity_device, max_shared_bytes_per_multiprocessor, type,               \
		   maxSharedMemoryPerMultiprocessor);                                              \
	SAME_PLACE(cupti_activity_device, max_registers_per_multiprocessor, type,                  \
		   maxRegistersPerMultiprocessor);                                                 \
	SAME_PLACE(cupti_activity_device, max_registers_per_block, type, maxRegistersPerBlock);    \
	SAME_PLACE(cupti_activity_device, max_shared_bytes_per_block, type,                        \
		   maxSharedMemoryPerBlock);                                                       \
	SAME_PLACE(cupti_activity_device, max_threads_per_block, type, maxThreadsPerBlock);        \
	SAME_PLACE(cupti_activity_device, max_block[0], type, maxBlockDimX);                       \
	SAME_PLACE(cupti_activity_device, max_block[2], type, maxBlockDimZ);                       \
	SAME_PLACE(cupti_activity_device, max_grid[0], type, maxGridDimX);                         \
	SAME_PLACE(cupti_activity_device, max_grid[2], type, maxGridDimZ);                         \
	SAME_PLACE(cupti_activity_device, compute_capability_major, type, computeCapabilityMajor); \
	SAME_PLACE(cupti_activity_device, compute_capability_minor, type, computeCapabilityMinor); \
	SAME_PLACE(cupti_activity_device, id, type, id);                                           \
	SAME_PLACE(cupti_activity_device, ecc_enabled, type, eccEnabled);                          \
	SAME_PLACE(cupti_activity_device, uuid, type, uuid);                                       \
	SAME_PLACE(cupti_activity_device, name, type, name)

CHECK_DEVICE(CUpti_ActivityDevice2);
CHECK_DEVICE(CUpti_ActivityDevice4);
#if CUPTI_API_VERSION >= 130000
CHECK_DEVICE(CUpti_ActivityDevice5);
#endif

/* struct cupti_activity_context */
SAME_SIZE(cupti_activity_context, CUpti_ActivityContext);
SAME_PLACE(cupti_activity_context, kind, CUpti_ActivityContext, kind);
SAME_PLACE(cupti_activity_context, context_id, CUpti_ActivityContext, contextId);
SAME_PLACE(cupti_activity_context, device_id, CUpti_ActivityContext, deviceId);
SAME_PLACE(cupti_activity_context, compute_api_kind, CUpti_ActivityContext, computeApiKind);
SAME_PLACE(cupti_activity_context, null_stream_id, CUpti_ActivityContext, nullStreamId);

/* struct cupti_object_id */
SAME_SIZE(cupti_object_id, CUpti_ActivityObjectKindId);
SAME_PLACE(cupti_object_id, device_or_process, CUpti_ActivityObjectKindId, pt.processId);
SAME_PLACE(cupti_object_id, context_or_thread, CUpti_ActivityObjectKindId, pt.threadId);
SAME_PLACE(cupti_object_id, device_or_process, CUpti_ActivityObjectKindId, dcs.deviceId);
SAME_PLACE(cupti_object_id, context_or_thread, CUpti_ActivityObjectKindId, dcs.contextId);
SAME_PLACE(cupti_object_id, stream, CUpti_ActivityObjectKindId, dcs.streamId);

/* struct cupti_activity_name */
SAME_SIZE(cupti_activity_name, CUpti_ActivityName);
SAME_PLACE(cupti_activity_name, kind, CUpti_ActivityName, kind);
SAME_PLACE(cupti_activity_name, object_kind, CUpti_ActivityName, objectKind);
SAME_PLACE(cupti_activity_name, object, CUpti_ActivityName, objectId);
SAME_PLACE(cupti_activity_name, name, CUpti_ActivityName, name);

/* struct cupti_activity_marker */
SAME_SIZE(cupti_activity_marker, CUpti_ActivityMarker2);
SAME_PLACE(cupti_activity_marker, kind, CUpti_ActivityMarker2, kind);
SAME_PLACE(cupti_activity_marker, flags, CUpti_ActivityMarker2, flags);
SAME_PLACE(cupti_activity_marker, timestamp_ns, CUpti_ActivityMarker2, timestamp);
SAME_PLACE(cupti_activity_marker, id, CUpti_ActivityMarker2, id);
SAME_PLACE(cupti_activity_marker, object_kind, CUpti_ActivityMarker2, objectKind);
SAME_PLACE(cupti_activity_marker, object, CUpti_ActivityMarker2, objectId);
SAME_PLACE(cupti_activity_marker, name, CUpti_ActivityMarker2, name);
SAME_PLACE(cupti_activity_marker, domain, CUpti_ActivityMarker2, domain);

/* struct cupti_activity_overhead */
SAME_SIZE(cupti_activity_overhead, CUpti_ActivityOverhead);
SAME_PLACE(cupti_activity_overhead, kind, CUpti_ActivityOverhead, kind);
SAME_PLACE(cupti_activity_overhead, overhead_kind, CUpti_ActivityOverhead, overheadKind);
SAME_PLACE(cupti_activity_overhead, object_kind, CUpti_ActivityOverhead, objectKind);
SAME_PLACE(cupti_activity_overhead, object, CUpti_ActivityOverhead, objectId);
SAME_PLACE(cupti_activity_overhead, start_ns, CUpti_ActivityOverhead, start);
SAME_PLACE(cupti_activity_overhead, end_ns, CUpti_ActivityOverhead, end);

/* struct cupti_activity_external_correlation */
SAME_SIZE(cupti_activity_external_correlation, CUpti_ActivityExternalCorrelation);
SAME_PLACE(cupti_activity_external_correlation, kind, CUpti_ActivityExternalCorrelation, kind);
SAME_PLACE(cupti_activity_external_correlation, external_kind, CUpti_ActivityExternalCorrelation,
	   externalKind);
SAME_PLACE(cupti_activity_external_correlation, external_id, CUpti_ActivityExternalCorrelation,
	   externalId);
SAME_PLACE(cupti_activity_external_correlation, correlation_id, CUpti_ActivityExternalCorrelation,
	   correlationId);
SAME_PLACE(cupti_activity_external_correlation, reserved0, CUpti_ActivityExternalCorrelation,
	   reserved);

/* Every entry point is one that the headers declare. */
#define CHECK_FUNCTION(need, name, arguments)                                                      \
	_Static_assert(sizeof(&name) == sizeof(int(*) arguments), #name " is a function");
CUPTI_FUNCTIONS(CHECK_FUNCTION)
