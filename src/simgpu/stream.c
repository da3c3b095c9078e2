/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of current contexts of each thread, the properties of contexts, and streams: the legacy
 * default stream of each context, the default stream of each thread, and those that programs
 * create.
 */
#include <stdlib.h>

#include "simgpu/sim.h"

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

static _Atomic uint32_t stream_count;

uint32_t sim_stream_take_id(void)
{
	return 13 + atomic_fetch_add(&stream_count, 1);
}

void sim_stream_init(CUstream stream, CUcontext context, unsigned int flags, int priority)
{
	stream->magic = SIM_MAGIC_STREAM;
	stream->id = sim_stream_take_id();
	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	pthread_mutex_init(&stream->lock, NULL);
	stream->queue_end_ns =
		sim_alloc(SIM_QUEUE_DEPTH * sizeof(*stream->queue_end_ns), "a stream");
}

void sim_stream_fini(CUstream stream)
{
	stream->magic = SIM_MAGIC_DEAD;
	free(stream->queue_end_ns);
	stream->queue_end_ns = NULL;
	pthread_mutex_destroy(&stream->lock);
}

static CUstream stream_make(CUcontext context, unsigned int flags, int priority)
{
	CUstream stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	sim_stream_init(stream, context, flags, priority);
	pthread_mutex_lock(&context->lock);
	stream->next = context->streams;
	context->streams = stream;
	pthread_mutex_unlock(&context->lock);
	sim_resource_notify(XT_CUPTI_RESOURCE_STREAM_CREATED, context, stream, NULL);
	return stream;
}

static void stream_free(CUstream stream)
{
	CUcontext context = stream->context;

	sim_resource_notify(XT_CUPTI_RESOURCE_STREAM_DESTROY_STARTING, context, stream, NULL);
	pthread_mutex_lock(&context->lock);
	for (CUstream *place = &context->streams; *place; place = &(*place)->next) {
		if (*place == stream) {
			*place = stream->next;
			break;
		}
	}
	pthread_mutex_unlock(&context->lock);
	sim_stream_fini(stream);
	free(stream);
}

void sim_stream_free_own(struct sim_thread *thread, CUcontext context)
{
	CUstream *place = &thread->own_streams;

	while (*place) {
		CUstream stream = *place;

		if (context && stream->context != context) {
			place = &stream->next_own;
			continue;
		}
		*place = stream->next_own;
		sim_deferred_wait(stream);
		sim_host_drain(stream, stream->context);
		stream_free(stream);
	}
}

/* Called when a thread exits. After a fork, threads that no longer exist may hold the locks. */
static void free_all_own(struct sim_thread *thread)
{
	if (sim_is_usable())
		sim_stream_free_own(thread, NULL);
}

static CUstream own_stream(CUcontext context)
{
	struct sim_thread *thread = sim_thread();
	CUstream stream;

	for (stream = thread->own_streams; stream; stream = stream->next_own)
		if (stream->context == context)
			return stream;
	stream = stream_make(context, 0, 0);
	if (stream) {
		stream->next_own = thread->own_streams;
		thread->own_streams = stream;
		thread->free_own_streams = free_all_own;
	}
	return stream;
}

static CUstream resolve_in(CUcontext context, CUstream handle, bool is_per_thread)
{
	if (!handle)
		handle = is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (handle == CU_STREAM_LEGACY)
		return &context->legacy;
	if (handle == CU_STREAM_PER_THREAD)
		return own_stream(context);
	return handle->magic == SIM_MAGIC_STREAM ? handle : NULL;
}

CUstream sim_stream_resolve(CUstream handle, CUresult *error)
{
	CUcontext context = sim_context_current();
	CUstream stream;

	if (!sim_context_is_valid(context)) {
		*error = CUDA_ERROR_INVALID_CONTEXT;
		return NULL;
	}
	*error = sim_context_failure(context);
	if (*error)
		return NULL;
	stream = resolve_in(context, handle, sim_thread()->call->api->is_per_thread);
	*error = stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	return stream;
}

CUstream sim_stream_resolve_uncaptured(CUstream handle, CUresult *error)
{
	CUstream stream = sim_stream_resolve(handle, error);

	if (!stream || !atomic_load(&stream->capture))
		return stream;
	*error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return NULL;
}

struct sim_place sim_stream_place(CUstream stream)
{
	return (struct sim_place){
		.device_id = (uint32_t)stream->context->device,
		.context_id = stream->context->id,
		.stream_id = stream->id,
	};
}

uint32_t sim_stream_id(CUcontext context, CUstream handle, bool is_per_thread)
{
	CUstream stream;

	if (!context)
		context = sim_context_current();
	if (!sim_context_is_valid(context))
		return 0;
	stream = resolve_in(context, handle, is_per_thread);
	return stream ? stream->id : 0;
}

CUresult sim_stream_create(CUstream *out, unsigned int flags)
{
	return sim_stream_create_with_priority(out, flags, 0);
}

CUresult sim_stream_create_with_priority(CUstream *out, unsigned int flags, int priority)
{
	CUcontext context = sim_context_current();

	if (!out || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = stream_make(context, flags, priority);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * Work in flight is unaffected: its times are known, and the context's tail includes it. Only
 * deferred work needs the stream, so it is waited for.
 */
CUresult sim_stream_destroy(CUstream stream)
{
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
	    stream->magic != SIM_MAGIC_STREAM)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_deferred_wait(stream);
	sim_host_drain(stream, stream->context);
	stream_free(stream);
	return CUDA_SUCCESS;
}

CUresult sim_stream_synchronize(CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve_uncaptured(handle, &error);

	if (!stream)
		return error;
	sim_stream_drain(stream);
	return sim_context_failure(stream->context);
}

CUresult sim_stream_query(CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve_uncaptured(handle, &error);

	if (!stream)
		return error;
	if (sim_is_deferred(stream))
		return CUDA_ERROR_NOT_READY;
	if (atomic_load(&stream->host_pending_count) || sim_stream_done_ns(stream) > sim_now_ns())
		return CUDA_ERROR_NOT_READY;
	return CUDA_SUCCESS;
}

#define GET(function, type, member)                                                                \
	CUresult function(CUstream handle, type *out)                                              \
	{                                                                                          \
		CUresult error;                                                                    \
		CUstream stream = sim_stream_resolve(handle, &error);                              \
                                                                                                   \
		if (!out)                                                                          \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		if (stream)                                                                        \
			*out = stream->member;                                                     \
		return error;                                                                      \
	}
GET(sim_stream_get_flags, unsigned int, flags)
GET(sim_stream_get_priority, int, priority)
GET(sim_stream_get_ctx, CUcontext, context)
GET(sim_stream_get_id, unsigned long long, id)
#undef GET
