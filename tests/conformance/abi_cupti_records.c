/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the activity records in cuda_abi/cupti_abi.h with all versions of them in the toolkit's
 * headers. Contains no code.
 */
#include "abi_check.h"

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

/* The fields of kernel records that are read have the same offset in every version. */
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

/* struct cupti_activity_memcpy_peer, CUpti_ActivityMemcpyPtoP */
SAME_PLACE(cupti_activity_memcpy_peer, kind, CUpti_ActivityMemcpyPtoP, kind);
SAME_PLACE(cupti_activity_memcpy_peer, copy_kind, CUpti_ActivityMemcpyPtoP, copyKind);
SAME_PLACE(cupti_activity_memcpy_peer, source_kind, CUpti_ActivityMemcpyPtoP, srcKind);
SAME_PLACE(cupti_activity_memcpy_peer, destination_kind, CUpti_ActivityMemcpyPtoP, dstKind);
SAME_PLACE(cupti_activity_memcpy_peer, flags, CUpti_ActivityMemcpyPtoP, flags);
SAME_PLACE(cupti_activity_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP, bytes);
SAME_PLACE(cupti_activity_memcpy_peer, start_ns, CUpti_ActivityMemcpyPtoP, start);
SAME_PLACE(cupti_activity_memcpy_peer, end_ns, CUpti_ActivityMemcpyPtoP, end);
SAME_PLACE(cupti_activity_memcpy_peer, device_id, CUpti_ActivityMemcpyPtoP, deviceId);
SAME_PLACE(cupti_activity_memcpy_peer, context_id, CUpti_ActivityMemcpyPtoP, contextId);
SAME_PLACE(cupti_activity_memcpy_peer, stream_id, CUpti_ActivityMemcpyPtoP, streamId);
SAME_PLACE(cupti_activity_memcpy_peer, source_device_id, CUpti_ActivityMemcpyPtoP, srcDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, source_context_id, CUpti_ActivityMemcpyPtoP, srcContextId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_device_id, CUpti_ActivityMemcpyPtoP,
	   dstDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_context_id, CUpti_ActivityMemcpyPtoP,
	   dstContextId);
SAME_PLACE(cupti_activity_memcpy_peer, correlation_id, CUpti_ActivityMemcpyPtoP, correlationId);

/* struct cupti_activity_memcpy_peer, CUpti_ActivityMemcpyPtoP2 */
SAME_PLACE(cupti_activity_memcpy_peer, kind, CUpti_ActivityMemcpyPtoP2, kind);
SAME_PLACE(cupti_activity_memcpy_peer, copy_kind, CUpti_ActivityMemcpyPtoP2, copyKind);
SAME_PLACE(cupti_activity_memcpy_peer, source_kind, CUpti_ActivityMemcpyPtoP2, srcKind);
SAME_PLACE(cupti_activity_memcpy_peer, destination_kind, CUpti_ActivityMemcpyPtoP2, dstKind);
SAME_PLACE(cupti_activity_memcpy_peer, flags, CUpti_ActivityMemcpyPtoP2, flags);
SAME_PLACE(cupti_activity_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP2, bytes);
SAME_PLACE(cupti_activity_memcpy_peer, start_ns, CUpti_ActivityMemcpyPtoP2, start);
SAME_PLACE(cupti_activity_memcpy_peer, end_ns, CUpti_ActivityMemcpyPtoP2, end);
SAME_PLACE(cupti_activity_memcpy_peer, device_id, CUpti_ActivityMemcpyPtoP2, deviceId);
SAME_PLACE(cupti_activity_memcpy_peer, context_id, CUpti_ActivityMemcpyPtoP2, contextId);
SAME_PLACE(cupti_activity_memcpy_peer, stream_id, CUpti_ActivityMemcpyPtoP2, streamId);
SAME_PLACE(cupti_activity_memcpy_peer, source_device_id, CUpti_ActivityMemcpyPtoP2, srcDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, source_context_id, CUpti_ActivityMemcpyPtoP2, srcContextId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_device_id, CUpti_ActivityMemcpyPtoP2,
	   dstDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_context_id, CUpti_ActivityMemcpyPtoP2,
	   dstContextId);
SAME_PLACE(cupti_activity_memcpy_peer, correlation_id, CUpti_ActivityMemcpyPtoP2, correlationId);

/* struct cupti_activity_memcpy_peer, CUpti_ActivityMemcpyPtoP3 */
SAME_PLACE(cupti_activity_memcpy_peer, kind, CUpti_ActivityMemcpyPtoP3, kind);
SAME_PLACE(cupti_activity_memcpy_peer, copy_kind, CUpti_ActivityMemcpyPtoP3, copyKind);
SAME_PLACE(cupti_activity_memcpy_peer, source_kind, CUpti_ActivityMemcpyPtoP3, srcKind);
SAME_PLACE(cupti_activity_memcpy_peer, destination_kind, CUpti_ActivityMemcpyPtoP3, dstKind);
SAME_PLACE(cupti_activity_memcpy_peer, flags, CUpti_ActivityMemcpyPtoP3, flags);
SAME_PLACE(cupti_activity_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP3, bytes);
SAME_PLACE(cupti_activity_memcpy_peer, start_ns, CUpti_ActivityMemcpyPtoP3, start);
SAME_PLACE(cupti_activity_memcpy_peer, end_ns, CUpti_ActivityMemcpyPtoP3, end);
SAME_PLACE(cupti_activity_memcpy_peer, device_id, CUpti_ActivityMemcpyPtoP3, deviceId);
SAME_PLACE(cupti_activity_memcpy_peer, context_id, CUpti_ActivityMemcpyPtoP3, contextId);
SAME_PLACE(cupti_activity_memcpy_peer, stream_id, CUpti_ActivityMemcpyPtoP3, streamId);
SAME_PLACE(cupti_activity_memcpy_peer, source_device_id, CUpti_ActivityMemcpyPtoP3, srcDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, source_context_id, CUpti_ActivityMemcpyPtoP3, srcContextId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_device_id, CUpti_ActivityMemcpyPtoP3,
	   dstDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_context_id, CUpti_ActivityMemcpyPtoP3,
	   dstContextId);
SAME_PLACE(cupti_activity_memcpy_peer, correlation_id, CUpti_ActivityMemcpyPtoP3, correlationId);
SAME_PLACE(cupti_activity_memcpy_peer, graph_node_id, CUpti_ActivityMemcpyPtoP3, graphNodeId);
SAME_PLACE(cupti_activity_memcpy_peer, graph_id, CUpti_ActivityMemcpyPtoP3, graphId);

#if CUPTI_API_VERSION >= 130000
/* struct cupti_activity_memcpy_peer, CUpti_ActivityMemcpyPtoP4 */
SAME_SIZE(cupti_activity_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
SAME_PLACE(cupti_activity_memcpy_peer, kind, CUpti_ActivityMemcpyPtoP4, kind);
SAME_PLACE(cupti_activity_memcpy_peer, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
SAME_PLACE(cupti_activity_memcpy_peer, source_kind, CUpti_ActivityMemcpyPtoP4, srcKind);
SAME_PLACE(cupti_activity_memcpy_peer, destination_kind, CUpti_ActivityMemcpyPtoP4, dstKind);
SAME_PLACE(cupti_activity_memcpy_peer, flags, CUpti_ActivityMemcpyPtoP4, flags);
SAME_PLACE(cupti_activity_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME_PLACE(cupti_activity_memcpy_peer, start_ns, CUpti_ActivityMemcpyPtoP4, start);
SAME_PLACE(cupti_activity_memcpy_peer, end_ns, CUpti_ActivityMemcpyPtoP4, end);
SAME_PLACE(cupti_activity_memcpy_peer, device_id, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME_PLACE(cupti_activity_memcpy_peer, context_id, CUpti_ActivityMemcpyPtoP4, contextId);
SAME_PLACE(cupti_activity_memcpy_peer, stream_id, CUpti_ActivityMemcpyPtoP4, streamId);
SAME_PLACE(cupti_activity_memcpy_peer, source_device_id, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, source_context_id, CUpti_ActivityMemcpyPtoP4, srcContextId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_device_id, CUpti_ActivityMemcpyPtoP4,
	   dstDeviceId);
SAME_PLACE(cupti_activity_memcpy_peer, destination_context_id, CUpti_ActivityMemcpyPtoP4,
	   dstContextId);
SAME_PLACE(cupti_activity_memcpy_peer, correlation_id, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME_PLACE(cupti_activity_memcpy_peer, graph_node_id, CUpti_ActivityMemcpyPtoP4, graphNodeId);
SAME_PLACE(cupti_activity_memcpy_peer, graph_id, CUpti_ActivityMemcpyPtoP4, graphId);
SAME_PLACE(cupti_activity_memcpy_peer, channel_id, CUpti_ActivityMemcpyPtoP4, channelID);
SAME_PLACE(cupti_activity_memcpy_peer, channel_type, CUpti_ActivityMemcpyPtoP4, channelType);

#endif

/* enum xt_cupti_memory_operation */
SAME_VALUE(XT_CUPTI_MEMORY_ALLOC, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
SAME_VALUE(XT_CUPTI_MEMORY_RELEASE, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);

/* struct cupti_activity_memory, CUpti_ActivityMemory2 */
SAME_PLACE(cupti_activity_memory, kind, CUpti_ActivityMemory2, kind);
SAME_PLACE(cupti_activity_memory, operation, CUpti_ActivityMemory2, memoryOperationType);
SAME_PLACE(cupti_activity_memory, memory_kind, CUpti_ActivityMemory2, memoryKind);
SAME_PLACE(cupti_activity_memory, correlation_id, CUpti_ActivityMemory2, correlationId);
SAME_PLACE(cupti_activity_memory, address, CUpti_ActivityMemory2, address);
SAME_PLACE(cupti_activity_memory, bytes, CUpti_ActivityMemory2, bytes);
SAME_PLACE(cupti_activity_memory, timestamp_ns, CUpti_ActivityMemory2, timestamp);
SAME_PLACE(cupti_activity_memory, program_counter, CUpti_ActivityMemory2, PC);
SAME_PLACE(cupti_activity_memory, process_id, CUpti_ActivityMemory2, processId);
SAME_PLACE(cupti_activity_memory, device_id, CUpti_ActivityMemory2, deviceId);
SAME_PLACE(cupti_activity_memory, context_id, CUpti_ActivityMemory2, contextId);
SAME_PLACE(cupti_activity_memory, stream_id, CUpti_ActivityMemory2, streamId);

/* struct cupti_activity_memory, CUpti_ActivityMemory3 */
SAME_PLACE(cupti_activity_memory, kind, CUpti_ActivityMemory3, kind);
SAME_PLACE(cupti_activity_memory, operation, CUpti_ActivityMemory3, memoryOperationType);
SAME_PLACE(cupti_activity_memory, memory_kind, CUpti_ActivityMemory3, memoryKind);
SAME_PLACE(cupti_activity_memory, correlation_id, CUpti_ActivityMemory3, correlationId);
SAME_PLACE(cupti_activity_memory, address, CUpti_ActivityMemory3, address);
SAME_PLACE(cupti_activity_memory, bytes, CUpti_ActivityMemory3, bytes);
SAME_PLACE(cupti_activity_memory, timestamp_ns, CUpti_ActivityMemory3, timestamp);
SAME_PLACE(cupti_activity_memory, program_counter, CUpti_ActivityMemory3, PC);
SAME_PLACE(cupti_activity_memory, process_id, CUpti_ActivityMemory3, processId);
SAME_PLACE(cupti_activity_memory, device_id, CUpti_ActivityMemory3, deviceId);
SAME_PLACE(cupti_activity_memory, context_id, CUpti_ActivityMemory3, contextId);
SAME_PLACE(cupti_activity_memory, stream_id, CUpti_ActivityMemory3, streamId);

#if CUPTI_API_VERSION >= 130000
/* struct cupti_activity_memory, CUpti_ActivityMemory4 */
SAME_PLACE(cupti_activity_memory, kind, CUpti_ActivityMemory4, kind);
SAME_PLACE(cupti_activity_memory, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME_PLACE(cupti_activity_memory, memory_kind, CUpti_ActivityMemory4, memoryKind);
SAME_PLACE(cupti_activity_memory, correlation_id, CUpti_ActivityMemory4, correlationId);
SAME_PLACE(cupti_activity_memory, address, CUpti_ActivityMemory4, address);
SAME_PLACE(cupti_activity_memory, bytes, CUpti_ActivityMemory4, bytes);
SAME_PLACE(cupti_activity_memory, timestamp_ns, CUpti_ActivityMemory4, timestamp);
SAME_PLACE(cupti_activity_memory, program_counter, CUpti_ActivityMemory4, PC);
SAME_PLACE(cupti_activity_memory, process_id, CUpti_ActivityMemory4, processId);
SAME_PLACE(cupti_activity_memory, device_id, CUpti_ActivityMemory4, deviceId);
SAME_PLACE(cupti_activity_memory, context_id, CUpti_ActivityMemory4, contextId);
SAME_PLACE(cupti_activity_memory, stream_id, CUpti_ActivityMemory4, streamId);

#endif

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

/* struct cupti_activity_graph_trace */
SAME_SIZE(cupti_activity_graph_trace, CUpti_ActivityGraphTrace2);
SAME_PLACE(cupti_activity_graph_trace, kind, CUpti_ActivityGraphTrace2, kind);
SAME_PLACE(cupti_activity_graph_trace, correlation_id, CUpti_ActivityGraphTrace2, correlationId);
SAME_PLACE(cupti_activity_graph_trace, start_ns, CUpti_ActivityGraphTrace2, start);
SAME_PLACE(cupti_activity_graph_trace, end_ns, CUpti_ActivityGraphTrace2, end);
SAME_PLACE(cupti_activity_graph_trace, device_id, CUpti_ActivityGraphTrace2, deviceId);
SAME_PLACE(cupti_activity_graph_trace, graph_id, CUpti_ActivityGraphTrace2, graphId);
SAME_PLACE(cupti_activity_graph_trace, context_id, CUpti_ActivityGraphTrace2, contextId);
SAME_PLACE(cupti_activity_graph_trace, stream_id, CUpti_ActivityGraphTrace2, streamId);
SAME_PLACE(cupti_activity_graph_trace, reserved0, CUpti_ActivityGraphTrace2, reserved);
SAME_PLACE(cupti_activity_graph_trace, end_device_id, CUpti_ActivityGraphTrace2, endDeviceId);
SAME_PLACE(cupti_activity_graph_trace, end_context_id, CUpti_ActivityGraphTrace2, endContextId);
