/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. An event stores the time at which all earlier work will be done. In a stream capture it
 * stores nodes of the graph instead.
 */
#include <stdlib.h>

#include "simgpu/ranks.h"

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
