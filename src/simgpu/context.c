/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of current contexts of each thread, and the properties of contexts.
 */
#include <stdlib.h>

#include "simgpu/ranks.h"

bool sim_context_is_valid(CUcontext context)
{
	return context && context->magic == SIM_MAGIC_CONTEXT;
}

CUcontext sim_context_current(void)
{
	struct sim_thread *thread = sim_thread();

	return thread->context_count ? thread->context_stack[thread->context_count - 1] : NULL;
}

bool sim_context_ids(CUcontext context, uint32_t *context_id, uint32_t *device_id)
{
	if (!sim_context_is_valid(context))
		return false;
	*context_id = context->id;
	*device_id = (uint32_t)context->device;
	return true;
}

CUresult sim_context_failure(CUcontext context)
{
	uint64_t fault_ns = atomic_load_explicit(&context->fault_ns, memory_order_relaxed);

	if (fault_ns && fault_ns <= sim_now_ns())
		return (CUresult)atomic_load(&context->fault);
	return sim_deferred_failure();
}

CUresult sim_context_push(CUcontext context)
{
	struct sim_thread *thread = sim_thread();

	if (thread->context_count == thread->context_capacity) {
		uint32_t capacity = thread->context_capacity ? 2 * thread->context_capacity : 8;
		CUcontext *stack = realloc(thread->context_stack, capacity * sizeof(*stack));

		if (!stack)
			return CUDA_ERROR_OUT_OF_MEMORY;
		thread->context_stack = stack;
		thread->context_capacity = capacity;
	}
	thread->context_stack[thread->context_count++] = context;
	return CUDA_SUCCESS;
}

CUresult sim_ctx_push_current(CUcontext context)
{
	return sim_context_is_valid(context) ? sim_context_push(context)
					     : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_ctx_pop_current(CUcontext *out)
{
	struct sim_thread *thread = sim_thread();

	if (!thread->context_count)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (out)
		*out = sim_context_current();
	thread->context_count--;
	return CUDA_SUCCESS;
}

CUresult sim_ctx_set_current(CUcontext context)
{
	struct sim_thread *thread = sim_thread();

	if (context && !sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (thread->context_count)
		thread->context_count--;
	return context ? sim_context_push(context) : CUDA_SUCCESS;
}

CUresult sim_ctx_get_current(CUcontext *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_context_current();
	return CUDA_SUCCESS;
}

CUresult sim_ctx_get_device(CUdevice *device)
{
	CUcontext context = sim_context_current();

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult sim_ctx_get_flags(unsigned int *flags)
{
	CUcontext context = sim_context_current();

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*flags = context->flags;
	return CUDA_SUCCESS;
}

CUresult sim_ctx_synchronize(void)
{
	CUcontext context = sim_context_current();

	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_context_drain(context);
	return sim_context_failure(context);
}

CUresult sim_ctx_get_api_version(CUcontext context, unsigned int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (context && !sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult sim_ctx_get_stream_priority_range(int *least, int *greatest)
{
	if (!sim_context_is_valid(sim_context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* Limits are stored but have no effect, because kernels do not run here. */
static _Atomic size_t limits[] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
};

CUresult sim_ctx_set_limit(CUlimit limit, size_t value)
{
	if ((size_t)limit >= sizeof(limits) / sizeof(limits[0]))
		return CUDA_ERROR_NOT_SUPPORTED;
	atomic_store(&limits[limit], value);
	return CUDA_SUCCESS;
}

CUresult sim_ctx_get_limit(size_t *value, CUlimit limit)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if ((size_t)limit >= sizeof(limits) / sizeof(limits[0]))
		return CUDA_ERROR_NOT_SUPPORTED;
	*value = atomic_load(&limits[limit]);
	return CUDA_SUCCESS;
}

CUresult sim_ctx_get_id(CUcontext context, unsigned long long *id)
{
	if (!context)
		context = sim_context_current();
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = context->id;
	return CUDA_SUCCESS;
}
