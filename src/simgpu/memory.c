/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, copies and memsets. Device memory is host memory here, and copies really copy it. A table
 * of all allocations gives the kind of an address.
 */
#include <stdlib.h>
#include <string.h>

#include "simgpu/graph.h"

#define ALIGNMENT_BYTES 512
#define BUCKETS		4096

struct allocation {
	uintptr_t start;
	uint64_t bytes;
	uint8_t kind;	    /* enum xt_cupti_memory_kind */
	bool is_registered; /* the program's own memory, pinned by cuMemHostRegister() */
	bool is_pooled;	    /* from cuMemAllocAsync() */
	CUcontext context;
	struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *buckets[BUCKETS]; /* by start; under lock */
static uint64_t device_bytes;		    /* under lock */

static struct allocation **bucket_of(uintptr_t start)
{
	return &buckets[(start / ALIGNMENT_BYTES) % BUCKETS];
}

static CUresult track(void *start, uint64_t bytes, uint8_t kind, bool is_registered, bool is_pooled)
{
	struct allocation *allocation = calloc(1, sizeof(*allocation));
	struct allocation **bucket = bucket_of((uintptr_t)start);

	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->start = (uintptr_t)start;
	allocation->bytes = bytes;
	allocation->kind = kind;
	allocation->is_registered = is_registered;
	allocation->is_pooled = is_pooled;
	allocation->context = sim_context_current();
	pthread_mutex_lock(&lock);
	allocation->next = *bucket;
	*bucket = allocation;
	if (kind == XT_CUPTI_MEMORY_DEVICE)
		device_bytes += bytes;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Removes an allocation from the table. NULL if none has that start, kind and origin. */
static struct allocation *untrack(uintptr_t start, bool is_host, bool is_registered)
{
	struct allocation *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct allocation **place = bucket_of(start); *place; place = &(*place)->next) {
		struct allocation *candidate = *place;

		if (candidate->start == start && candidate->is_registered == is_registered &&
		    (candidate->kind == XT_CUPTI_MEMORY_PINNED) == is_host) {
			found = candidate;
			*place = candidate->next;
			break;
		}
	}
	if (found && found->kind == XT_CUPTI_MEMORY_DEVICE)
		device_bytes -= found->bytes;
	pthread_mutex_unlock(&lock);
	return found;
}

/* Copies out the allocation that contains an address. False if there is none. */
static bool look_up(uintptr_t address, struct allocation *out)
{
	const struct allocation *found;

	pthread_mutex_lock(&lock);
	for (found = *bucket_of(address); found && found->start != address; found = found->next)
		;
	for (size_t i = 0; i < BUCKETS && !found; i++)
		for (found = buckets[i]; found && address - found->start >= found->bytes;)
			found = found->next;
	if (found)
		*out = *found;
	pthread_mutex_unlock(&lock);
	return found;
}

/* The context in which memory was allocated, NULL if it is not known. */
static CUcontext sim_memory_context(const void *address)
{
	struct allocation allocation;

	return look_up((uintptr_t)address, &allocation) ? allocation.context : NULL;
}

static uint8_t sim_memory_kind(const void *address)
{
	struct allocation allocation;

	if (look_up((uintptr_t)address, &allocation))
		return allocation.kind;
	return XT_CUPTI_MEMORY_PAGEABLE;
}

/*
 * An allocation always takes a correlation id. An untraced release has the id of the previous call.
 * Both are as with a real CUPTI.
 */
static void report(const void *address, uint64_t bytes, uint8_t kind, CUstream stream,
		   bool is_release)
{
	bool is_wanted = atomic_load_explicit(&sim_switches.activity_enabled[SIM_SWITCH_ALLOCATION],
					      memory_order_acquire);
	CUcontext context = sim_context_current();
	struct sim_allocation allocation = {
		.address = (uintptr_t)address,
		.bytes = bytes,
		.memory_kind = kind,
		.is_release = is_release,
		.place.stream_id = UINT32_MAX,
	};

	if (!is_wanted && !sim_truth_is_on())
		return;
	if (stream)
		allocation.place = sim_stream_place(stream);
	else if (sim_context_is_valid(context))
		sim_context_ids(context, &allocation.place.context_id, &allocation.place.device_id);
	if (is_wanted)
		allocation.correlation_id =
			is_release ? sim_correlation_id_borrowed() : sim_correlation_id();
	allocation.when_ns = sim_now_ns();
	if (sim_truth_is_on())
		sim_truth_allocation(&allocation);
	if (!is_wanted)
		return;
	atomic_load_explicit(&sim_switches.tracer, memory_order_acquire)->allocation(&allocation);
}

static CUresult allocate(void **out, size_t bytes, uint8_t kind, CUstream stream)
{
	CUresult result;
	bool is_full;

	if (!out || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(sim_context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	is_full = bytes > sim_device_facts(0)->memory_bytes - device_bytes;
	pthread_mutex_unlock(&lock);
	if (is_full || posix_memalign(out, ALIGNMENT_BYTES, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = track(*out, bytes, kind, false, stream != NULL);
	if (result)
		free(*out);
	else
		report(*out, bytes, kind, stream, false);
	return result;
}

static CUresult allocate_device(CUdeviceptr *out, size_t bytes, uint8_t kind, CUstream stream)
{
	void *start;
	CUresult result;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	result = allocate(&start, bytes, kind, stream);
	if (result == CUDA_SUCCESS)
		*out = (CUdeviceptr)(uintptr_t)start;
	return result;
}

static CUresult release(uintptr_t start, bool is_host, CUstream stream)
{
	struct allocation *allocation;

	if (!start)
		return is_host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	allocation = untrack(start, is_host, false);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	report((void *)start, allocation->bytes, allocation->kind, stream, true);
	free((void *)start);
	free(allocation);
	return CUDA_SUCCESS;
}

CUresult sim_mem_alloc(CUdeviceptr *out, size_t bytes)
{
	return allocate_device(out, bytes, XT_CUPTI_MEMORY_DEVICE, NULL);
}

/* Freeing waits for the work in flight, as on a real device. */
CUresult sim_mem_free(CUdeviceptr start)
{
	CUcontext context = sim_context_current();

	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (start)
		sim_context_drain(context);
	return release((uintptr_t)start, false, NULL);
}

CUresult sim_mem_alloc_managed(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return allocate_device(out, bytes, XT_CUPTI_MEMORY_MANAGED, NULL);
}

CUresult sim_mem_alloc_async(CUdeviceptr *out, size_t bytes, CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve_uncaptured(handle, &error);

	if (!stream)
		return error;
	return allocate_device(out, bytes, XT_CUPTI_MEMORY_DEVICE, stream);
}

static void record_free_async(CUdeviceptr start)
{
	struct allocation found;

	if (atomic_load(&sim_switches.activity_enabled[SIM_SWITCH_ALLOCATION]) && start &&
	    look_up((uintptr_t)start, &found) && !found.is_pooled)
		sim_crash("MEMORY2 is enabled in cuMemFreeAsync() of memory that is from no pool");
}

/* Data moves when it is enqueued, so no work in flight needs the memory. */
CUresult sim_mem_free_async(CUdeviceptr start, CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve_uncaptured(handle, &error);

	if (!stream)
		return error;
	record_free_async(start);
	return release((uintptr_t)start, false, stream);
}

CUresult sim_mem_host_alloc(void **out, size_t bytes, unsigned int flags)
{
	if (flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	return allocate(out, bytes, XT_CUPTI_MEMORY_PINNED, NULL);
}

CUresult sim_mem_alloc_host(void **out, size_t bytes)
{
	return allocate(out, bytes, XT_CUPTI_MEMORY_PINNED, NULL);
}

CUresult sim_mem_free_host(void *start)
{
	return release((uintptr_t)start, true, NULL);
}

CUresult sim_mem_host_get_device_pointer(CUdeviceptr *out, void *start, unsigned int flags)
{
	if (!out || flags || sim_memory_kind(start) != XT_CUPTI_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdeviceptr)(uintptr_t)start;
	return CUDA_SUCCESS;
}

CUresult sim_mem_host_register(void *start, size_t bytes, unsigned int flags)
{
	if (!start || !bytes || flags & ~15u)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(sim_context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sim_memory_kind(start) != XT_CUPTI_MEMORY_PAGEABLE)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return track(start, bytes, XT_CUPTI_MEMORY_PINNED, true, false);
}

CUresult sim_mem_host_unregister(void *start)
{
	struct allocation *allocation = untrack((uintptr_t)start, true, true);

	if (!allocation)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	free(allocation);
	return CUDA_SUCCESS;
}

CUresult sim_mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
	if (!sim_context_is_valid(sim_context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	if (free_bytes)
		*free_bytes = sim_device_facts(0)->memory_bytes - device_bytes;
	if (total_bytes)
		*total_bytes = sim_device_facts(0)->memory_bytes;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult sim_mem_get_address_range(CUdeviceptr *start, size_t *bytes, CUdeviceptr address)
{
	struct allocation allocation;

	if (!look_up((uintptr_t)address, &allocation))
		return CUDA_ERROR_NOT_FOUND;
	if (start)
		*start = allocation.start;
	if (bytes)
		*bytes = allocation.bytes;
	return CUDA_SUCCESS;
}

/* All devices have one pool, which is no object. */
static CUmemoryPool the_pool(void)
{
	return (CUmemoryPool)buckets;
}

CUresult sim_mem_pool_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (pool != the_pool() || attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*(cuuint64_t *)value = device_bytes;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult sim_pointer_get_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct allocation found;

	if (!data || !look_up((uintptr_t)address, &found))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = found.context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = found.kind == XT_CUPTI_MEMORY_PINNED ? CU_MEMORYTYPE_HOST
									     : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (found.kind == XT_CUPTI_MEMORY_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = found.kind == XT_CUPTI_MEMORY_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = found.context ? found.context->device : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = found.start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = found.bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = found.is_pooled ? the_pool() : NULL;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/*
 * The calling thread copies at once. The timeline shows when a device would have finished. Host
 * functions of the stream may still write the source, so a copy waits for them first.
 */
#define STAGED_BYTES (64u << 10)

void sim_transfer_run(const struct sim_transfer *transfer)
{
	unsigned char *place = transfer->destination;

	if (transfer->source) {
		memmove(transfer->destination, transfer->source, transfer->bytes);
	} else if (transfer->element_bytes == 1) {
		memset(place, (int)transfer->value, transfer->bytes);
	} else {
		for (uint64_t i = 0; i < transfer->bytes; i += transfer->element_bytes)
			memcpy(place + i, &transfer->value, transfer->element_bytes);
	}
}

static bool is_pageable(const struct sim_transfer *transfer)
{
	return transfer->source &&
	       (sim_memory_kind(transfer->source) == XT_CUPTI_MEMORY_PAGEABLE ||
		sim_memory_kind(transfer->destination) == XT_CUPTI_MEMORY_PAGEABLE);
}

uint64_t sim_transfer_duration_ns(const struct sim_transfer *transfer)
{
	if (!transfer->source)
		return sim_set_duration_ns(transfer->bytes);
	return sim_copy_duration_ns(transfer->bytes, transfer->copy_kind, is_pageable(transfer));
}

static struct sim_memory_run run_of(const struct sim_transfer *transfer, struct sim_place place,
				    struct sim_span span, const struct sim_part *part)
{
	struct sim_memory_run run = {
		.place = place,
		.span = span,
		.correlation_id = part && part->is_by_device ? 0 : sim_correlation_id(),
		.bytes = transfer->bytes,
		.graph_node_id = part ? part->node_id : 0,
		.graph_id = part ? part->graph_id : 0,
		.is_async = transfer->is_async,
		.copy_kind = transfer->copy_kind,
		.value = transfer->value,
		.is_unrecorded = part && part->is_unrecorded,
	};

	if (transfer->copy_kind == XT_CUPTI_COPY_PTOP) {
		run.source = sim_peer_place(transfer->source_context, place);
		run.destination = sim_peer_place(transfer->destination_context, place);
		run.place = run.source;
		run.is_staged = !sim_peer_is_direct(transfer->source_context,
						    transfer->destination_context);
	}
	run.destination_kind = sim_memory_kind(transfer->destination);
	if (transfer->source)
		run.source_kind = sim_memory_kind(transfer->source);
	return run;
}

void sim_transfer_report(const struct sim_transfer *transfer, struct sim_place place,
			 struct sim_span span, const struct sim_part *part)
{
	enum sim_switch activity = transfer->source ? SIM_SWITCH_COPY : SIM_SWITCH_SET;
	struct sim_memory_run run;

	if (!sim_activity_is_on(activity) && !sim_truth_is_on())
		return;
	run = run_of(transfer, place, span, part);
	sim_transfer_deliver(&run, !transfer->source);
}

static void transfer_defer(const struct sim_transfer *transfer, CUstream stream)
{
	const struct sim_memory_run run =
		run_of(transfer, sim_stream_place(stream), (struct sim_span){0, 0}, NULL);

	sim_defer_transfer(stream, sim_now_ns() + SIM_COPY_LATENCY_NS,
			   sim_transfer_duration_ns(transfer), &run, !transfer->source);
}

static CUresult capture(CUstream stream, const struct sim_transfer *transfer)
{
	const struct CUgraphNode_st content = {
		.type = transfer->source ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET,
		.transfer = *transfer,
	};

	return transfer->is_async ? sim_capture(stream, &content)
				  : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult transfer_start(CUstream handle, const struct sim_transfer *transfer)
{
	struct sim_span span;
	bool is_waited_for;
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);

	if (!stream)
		return error;
	if (!transfer->bytes)
		return CUDA_SUCCESS;
	if (!transfer->destination)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&stream->capture))
		return capture(stream, transfer);
	sim_host_drain(stream, stream->context);
	sim_transfer_run(transfer);
	/* The driver, too, copies large pageable memory through a staging buffer of its own. */
	is_waited_for =
		!transfer->is_async || (transfer->bytes >= STAGED_BYTES && is_pageable(transfer));
	if (sim_is_deferred(stream)) {
		transfer_defer(transfer, stream);
		if (is_waited_for)
			sim_stream_drain(stream);
		return sim_context_failure(stream->context);
	}
	span = sim_stream_enqueue(stream, SIM_COPY_LATENCY_NS, sim_transfer_duration_ns(transfer));
	sim_transfer_report(transfer, sim_stream_place(stream), span, NULL);
	if (is_waited_for)
		sim_wait_until(span.end_ns);
	return sim_context_failure(stream->context);
}

/* Memory of two devices is known by its addresses. */
static void find_devices(struct sim_transfer *transfer)
{
	CUcontext source = sim_memory_context(transfer->source);
	CUcontext destination = sim_memory_context(transfer->destination);

	if (!sim_context_is_valid(source) || !sim_context_is_valid(destination) ||
	    source->device == destination->device)
		return;
	transfer->copy_kind = XT_CUPTI_COPY_PTOP;
	transfer->source_context = source;
	transfer->destination_context = destination;
}

static CUresult copy(void *destination, const void *source, size_t bytes, uint8_t copy_kind,
		     bool is_async, CUstream stream)
{
	struct sim_transfer transfer = {
		.destination = destination,
		.source = source,
		.bytes = bytes,
		.copy_kind = copy_kind,
		.is_async = is_async,
	};

	if (bytes && !source)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy_kind == XT_CUPTI_COPY_DTOD)
		find_devices(&transfer);
	return transfer_start(stream, &transfer);
}

static void *pointer(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

uint8_t sim_copy_kind(bool from_host, bool to_host)
{
	if (from_host)
		return to_host ? XT_CUPTI_COPY_HTOH : XT_CUPTI_COPY_HTOD;
	return to_host ? XT_CUPTI_COPY_DTOH : XT_CUPTI_COPY_DTOD;
}

/* The direction of a copy between two addresses of unknown kind. */
static uint8_t copy_kind_of(CUdeviceptr destination, CUdeviceptr source)
{
	return sim_copy_kind(sim_memory_kind(pointer(source)) <= XT_CUPTI_MEMORY_PINNED,
			     sim_memory_kind(pointer(destination)) <= XT_CUPTI_MEMORY_PINNED);
}

/* A synchronous copy and its asynchronous form. Device addresses are integers, as in CUDA. */
#define MEMCPY(name, destination_type, source_type, kind)                                          \
	CUresult name(destination_type to, source_type from, size_t bytes)                         \
	{                                                                                          \
		return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, kind,     \
			    false, NULL);                                                          \
	}                                                                                          \
	CUresult name##_async(destination_type to, source_type from, size_t bytes,                 \
			      CUstream stream)                                                     \
	{                                                                                          \
		return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, kind,     \
			    true, stream);                                                         \
	}
MEMCPY(sim_memcpy, CUdeviceptr, CUdeviceptr, copy_kind_of(to, from))
MEMCPY(sim_memcpy_htod, CUdeviceptr, const void *, XT_CUPTI_COPY_HTOD)
MEMCPY(sim_memcpy_dtoh, void *, CUdeviceptr, XT_CUPTI_COPY_DTOH)
MEMCPY(sim_memcpy_dtod, CUdeviceptr, CUdeviceptr, XT_CUPTI_COPY_DTOD)

static CUresult copy_peer(CUdeviceptr destination, CUcontext destination_context,
			  CUdeviceptr source, CUcontext source_context, size_t bytes, bool is_async,
			  CUstream stream)
{
	struct sim_transfer transfer = {
		.destination = pointer(destination),
		.source = pointer(source),
		.bytes = bytes,
		.copy_kind = XT_CUPTI_COPY_PTOP,
		.is_async = is_async,
		.source_context = source_context,
		.destination_context = destination_context,
	};

	if (!sim_context_is_valid(source_context) || !sim_context_is_valid(destination_context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (bytes && !source)
		return CUDA_ERROR_INVALID_VALUE;
	if (source_context->device == destination_context->device)
		transfer.copy_kind = XT_CUPTI_COPY_DTOD;
	return transfer_start(stream, &transfer);
}

CUresult sim_memcpy_peer(CUdeviceptr destination, CUcontext destination_context, CUdeviceptr source,
			 CUcontext source_context, size_t bytes)
{
	return copy_peer(destination, destination_context, source, source_context, bytes, false,
			 NULL);
}

CUresult sim_memcpy_peer_async(CUdeviceptr destination, CUcontext destination_context,
			       CUdeviceptr source, CUcontext source_context, size_t bytes,
			       CUstream stream)
{
	return copy_peer(destination, destination_context, source, source_context, bytes, true,
			 stream);
}

static CUresult set(CUdeviceptr destination, uint32_t value, uint32_t element_bytes, size_t count,
		    bool is_async, CUstream stream)
{
	const struct sim_transfer transfer = {
		.destination = pointer(destination),
		.bytes = count * element_bytes,
		.value = value,
		.element_bytes = element_bytes,
		.is_async = is_async,
	};

	if (destination % element_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return transfer_start(stream, &transfer);
}

#define MEMSET(name, type)                                                                         \
	CUresult name(CUdeviceptr destination, type value, size_t count)                           \
	{                                                                                          \
		return set(destination, value, sizeof(value), count, false, NULL);                 \
	}                                                                                          \
	CUresult name##_async(CUdeviceptr destination, type value, size_t count, CUstream stream)  \
	{                                                                                          \
		return set(destination, value, sizeof(value), count, true, stream);                \
	}
MEMSET(sim_memset_d8, unsigned char)
MEMSET(sim_memset_d16, unsigned short)
MEMSET(sim_memset_d32, unsigned int)
