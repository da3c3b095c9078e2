/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches, host functions and events. Runs on the application's threads. Takes the lock of
 * one stream and no other.
 */
#include <stdlib.h>

#include "simgpu/graph.h"

#define BLOCK_THREADS_MAX	 1024
#define SHARED_BYTES_DEFAULT_MAX 49152

CUresult sim_shape_check(const struct sim_shape *shape)
{
	const uint32_t *block = shape->block;
	const uint32_t *grid = shape->grid;
	int32_t allowed_bytes;

	if (!sim_function_is_valid(shape->function))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > 65535 ||
	    grid[2] > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	if (!block[0] || !block[1] || !block[2] || block[0] > BLOCK_THREADS_MAX ||
	    block[1] > BLOCK_THREADS_MAX || block[2] > 64 ||
	    block[0] * block[1] * block[2] > BLOCK_THREADS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	allowed_bytes = atomic_load_explicit(&shape->function->dynamic_shared_max_bytes,
					     memory_order_relaxed);
	if (!allowed_bytes)
		allowed_bytes = SHARED_BYTES_DEFAULT_MAX;
	return shape->dynamic_shared_bytes > (uint32_t)allowed_bytes ? CUDA_ERROR_INVALID_VALUE
								     : CUDA_SUCCESS;
}

static struct sim_kernel_run run_of(const struct sim_shape *shape, struct sim_place place,
				    struct sim_span span, const struct sim_part *part)
{
	return (struct sim_kernel_run){
		.place = place,
		.span = span,
		.correlation_id = part && part->is_by_device ? 0 : sim_correlation_id(),
		.name = shape->function->name,
		.grid = {shape->grid[0], shape->grid[1], shape->grid[2]},
		.block = {shape->block[0], shape->block[1], shape->block[2]},
		.static_shared_bytes = shape->function->static_shared_bytes,
		.dynamic_shared_bytes = shape->dynamic_shared_bytes,
		.registers_per_thread = shape->function->registers_per_thread,
		.is_cooperative = shape->is_cooperative,
		.graph_node_id = part ? part->node_id : 0,
		.graph_id = part ? part->graph_id : 0,
		.is_unrecorded = part && part->is_unrecorded,
	};
}

void sim_kernel_report(const struct sim_shape *shape, struct sim_place place, struct sim_span span,
		       const struct sim_part *part)
{
	const struct sim_kernel_run run = run_of(shape, place, span, part);

	sim_kernel_deliver(&run);
}

/* Returns without waiting for the work before this kernel, or for the other ranks. */
static CUresult launch_deferred(const struct sim_shape *shape, CUstream stream,
				uint64_t duration_ns, void **params)
{
	uint64_t earliest_ns = sim_now_ns() + SIM_LAUNCH_LATENCY_NS;
	const struct sim_kernel_run run =
		run_of(shape, sim_stream_place(stream), (struct sim_span){0, 0}, NULL);

	if (sim_is_collective(shape->function))
		return sim_defer_collective(stream, earliest_ns, &run, params);
	sim_defer_kernel(stream, earliest_ns, duration_ns, &run);
	return CUDA_SUCCESS;
}

static CUresult launch(const struct sim_shape *shape, CUstream handle, void **params)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);
	CUresult problem;
	uint64_t duration_ns, index, launch_ns = sim_config()->launch_ns;
	uint64_t until_ns = launch_ns ? sim_now_ns() + launch_ns : 0;

	if (sim_truth_is_on())
		sim_truth_launch(sim_thread()->call);
	if (!stream)
		return error;
	problem = sim_shape_check(shape);
	if (problem)
		return problem;
	if (atomic_load_explicit(&stream->capture, memory_order_acquire))
		return sim_capture(stream,
				   &(struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_KERNEL,
							    .shape = *shape});
	index = atomic_fetch_add_explicit(&stream->launch_count, 1, memory_order_relaxed);
	duration_ns = sim_kernel_duration_ns(shape, index);
	if (sim_is_collective(shape->function) || sim_is_deferred(stream))
		problem = launch_deferred(shape, stream, duration_ns, params);
	else
		sim_kernel_report(shape, sim_stream_place(stream),
				  sim_stream_enqueue(stream, SIM_LAUNCH_LATENCY_NS, duration_ns),
				  NULL);
	if (until_ns)
		sim_wait_until(until_ns);
	return problem;
}

CUresult sim_launch_kernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			   void **params, void **extra)
{
	const struct sim_shape shape = {
		.function = function,
		.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.dynamic_shared_bytes = shared_bytes,
	};

	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(&shape, stream, params);
}

CUresult sim_launch_cooperative_kernel(CUfunction function, unsigned int grid_x,
				       unsigned int grid_y, unsigned int grid_z,
				       unsigned int block_x, unsigned int block_y,
				       unsigned int block_z, unsigned int shared_bytes,
				       CUstream stream, void **params)
{
	const struct sim_shape shape = {
		.function = function,
		.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.dynamic_shared_bytes = shared_bytes,
		.is_cooperative = true,
	};

	return launch(&shape, stream, params);
}

CUresult sim_launch_kernel_ex(const CUlaunchConfig *config, CUfunction function, void **params,
			      void **extra)
{
	struct sim_shape shape;

	if (!config || (params && extra) || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	shape = (struct sim_shape){
		.function = function,
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.dynamic_shared_bytes = config->sharedMemBytes,
	};
	for (unsigned int i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			shape.is_cooperative = config->attrs[i].value.cooperative != 0;
	return launch(&shape, config->hStream, params);
}

CUresult sim_launch_host_func(CUstream handle, CUhostFn function, void *user_data)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);
	struct sim_span span;

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream)
		return error;
	if (atomic_load(&stream->capture))
		return sim_capture(stream,
				   &(struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_HOST,
							    .host_call = {function, user_data}});
	if (sim_is_deferred(stream)) {
		sim_defer_host(stream, sim_now_ns() + SIM_LAUNCH_LATENCY_NS, function, user_data);
		return CUDA_SUCCESS;
	}
	span = sim_stream_enqueue(stream, SIM_LAUNCH_LATENCY_NS, 0);
	return sim_host_enqueue(stream, function, user_data, span.start_ns);
}

CUresult sim_profiler_control(void)
{
	return CUDA_SUCCESS;
}

/*
 * An event stores the time at which all earlier work will be done. In a stream capture it stores
 * nodes of the graph instead.
 */
static bool is_event(CUevent event)
{
	return event && event->magic == SIM_MAGIC_EVENT;
}

CUresult sim_event_create(CUevent *out, unsigned int flags)
{
	CUcontext context = sim_context_current();
	CUevent event;

	if (!out || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->magic = SIM_MAGIC_EVENT;
	event->flags = flags;
	event->context = context;
	*out = event;
	return CUDA_SUCCESS;
}

CUresult sim_event_destroy(CUevent event)
{
	if (!is_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	event->magic = SIM_MAGIC_DEAD;
	sim_event_forget(event);
	free(event->capture_nodes);
	free(event);
	return CUDA_SUCCESS;
}

CUresult sim_event_record(CUevent event, CUstream handle)
{
	return sim_event_record_with_flags(event, handle, 0);
}

CUresult sim_event_record_with_flags(CUevent event, CUstream handle, unsigned int flags)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);
	uint64_t now_ns = sim_now_ns();
	uint64_t done_ns;

	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!stream)
		return error;
	if (atomic_load(&stream->capture))
		return sim_capture_record(stream, event);
	event->capture_id = 0;
	if (sim_is_deferred(stream)) {
		sim_defer_event(stream, event);
		atomic_store(&event->is_recorded, true);
		return CUDA_SUCCESS;
	}
	sim_event_forget(event);
	done_ns = sim_stream_done_ns(stream);
	atomic_store(&event->done_ns, done_ns > now_ns ? done_ns : now_ns);
	atomic_store(&event->is_recorded, true);
	return CUDA_SUCCESS;
}

CUresult sim_event_query(CUevent event)
{
	if (!is_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->capture_id)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (sim_context_failure(event->context))
		return sim_context_failure(event->context);
	if (sim_event_is_deferred(event))
		return CUDA_ERROR_NOT_READY;
	return atomic_load(&event->done_ns) > sim_now_ns() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult sim_event_synchronize(CUevent event)
{
	if (!is_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->capture_id)
		return CUDA_ERROR_CAPTURED_EVENT;
	sim_deferred_wait_event(event);
	sim_wait_until(atomic_load(&event->done_ns));
	return sim_context_failure(event->context);
}

CUresult sim_event_elapsed_time(float *milliseconds, CUevent start, CUevent end)
{
	int64_t elapsed_ns;

	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_event(start) || !is_event(end) || !atomic_load(&start->is_recorded) ||
	    !atomic_load(&end->is_recorded) ||
	    (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_event_query(start) || sim_event_query(end))
		return CUDA_ERROR_NOT_READY;
	elapsed_ns = (int64_t)(atomic_load(&end->done_ns) - atomic_load(&start->done_ns));
	*milliseconds = (float)elapsed_ns / 1e6f;
	return CUDA_SUCCESS;
}

CUresult sim_stream_wait_event(CUstream handle, CUevent event, unsigned int flags)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);

	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!stream)
		return error;
	if (event->capture_id)
		return sim_capture_join(stream, event);
	if (atomic_load(&stream->capture))
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	if (!sim_defer_wait(stream, event))
		sim_stream_raise(stream, atomic_load(&event->done_ns));
	return CUDA_SUCCESS;
}
