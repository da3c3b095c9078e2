/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. Device memory is host memory here, and copies really copy it. A table of all allocations
 * gives the kind of an address.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/sim.h"

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
	bool is_found = false;

	pthread_mutex_lock(&lock);
	for (struct allocation *a = *bucket_of(address); a && !is_found; a = a->next) {
		if (a->start == address) {
			*out = *a;
			is_found = true;
		}
	}
	for (size_t i = 0; i < BUCKETS && !is_found; i++) {
		for (struct allocation *a = buckets[i]; a && !is_found; a = a->next) {
			if (address - a->start < a->bytes) {
				*out = *a;
				is_found = true;
			}
		}
	}
	pthread_mutex_unlock(&lock);
	return is_found;
}

CUcontext sim_memory_context(const void *address)
{
	struct allocation allocation;

	return look_up((uintptr_t)address, &allocation) ? allocation.context : NULL;
}

uint8_t sim_memory_kind(const void *address)
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
	CUstream stream = sim_stream_resolve(handle, &error);

	if (!stream)
		return error;
	if (atomic_load(&stream->capture))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return allocate_device(out, bytes, XT_CUPTI_MEMORY_DEVICE, stream);
}

/* A real CUPTI crashes here, too, at memory that is from no pool. */
static void record_free_async(CUdeviceptr start)
{
	struct allocation found;

	if (atomic_load(&sim_switches.activity_enabled[SIM_SWITCH_ALLOCATION]) && start &&
	    look_up((uintptr_t)start, &found) && !found.is_pooled) {
		fputs("xtrace simulated GPU: MEMORY2 is enabled in cuMemFreeAsync() of memory that "
		      "is from no pool\n",
		      stderr);
		raise(SIGSEGV);
		abort();
	}
}

/* Data moves when it is enqueued, so no work in flight needs the memory. */
CUresult sim_mem_free_async(CUdeviceptr start, CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);

	if (!stream)
		return error;
	if (atomic_load(&stream->capture))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
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
