/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets. The calling thread moves the data at once. The timeline shows when a device
 * would have finished. Host functions of the stream may still write the source, so a copy waits for
 * them first.
 */
#include <string.h>

#include "simgpu/ranks.h"

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
		return transfer->is_async ? sim_capture_transfer(stream, transfer)
					  : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
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

/* The direction of a copy between two addresses of unknown kind. */
static uint8_t copy_kind_of(CUdeviceptr destination, CUdeviceptr source)
{
	bool to_host = sim_memory_kind(pointer(destination)) <= XT_CUPTI_MEMORY_PINNED;
	bool from_host = sim_memory_kind(pointer(source)) <= XT_CUPTI_MEMORY_PINNED;

	if (from_host)
		return to_host ? XT_CUPTI_COPY_HTOH : XT_CUPTI_COPY_HTOD;
	return to_host ? XT_CUPTI_COPY_DTOH : XT_CUPTI_COPY_DTOD;
}

CUresult sim_memcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
	return copy(pointer(destination), pointer(source), bytes, copy_kind_of(destination, source),
		    false, NULL);
}

CUresult sim_memcpy_async(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
			  CUstream stream)
{
	return copy(pointer(destination), pointer(source), bytes, copy_kind_of(destination, source),
		    true, stream);
}

CUresult sim_memcpy_htod(CUdeviceptr destination, const void *source, size_t bytes)
{
	return copy(pointer(destination), source, bytes, XT_CUPTI_COPY_HTOD, false, NULL);
}

CUresult sim_memcpy_dtoh(void *destination, CUdeviceptr source, size_t bytes)
{
	return copy(destination, pointer(source), bytes, XT_CUPTI_COPY_DTOH, false, NULL);
}

CUresult sim_memcpy_dtod(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
	return copy(pointer(destination), pointer(source), bytes, XT_CUPTI_COPY_DTOD, false, NULL);
}

CUresult sim_memcpy_htod_async(CUdeviceptr destination, const void *source, size_t bytes,
			       CUstream stream)
{
	return copy(pointer(destination), source, bytes, XT_CUPTI_COPY_HTOD, true, stream);
}

CUresult sim_memcpy_dtoh_async(void *destination, CUdeviceptr source, size_t bytes, CUstream stream)
{
	return copy(destination, pointer(source), bytes, XT_CUPTI_COPY_DTOH, true, stream);
}

CUresult sim_memcpy_dtod_async(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
			       CUstream stream)
{
	return copy(pointer(destination), pointer(source), bytes, XT_CUPTI_COPY_DTOD, true, stream);
}

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

CUresult sim_memset_d8(CUdeviceptr destination, unsigned char value, size_t count)
{
	return set(destination, value, 1, count, false, NULL);
}

CUresult sim_memset_d16(CUdeviceptr destination, unsigned short value, size_t count)
{
	return set(destination, value, 2, count, false, NULL);
}

CUresult sim_memset_d32(CUdeviceptr destination, unsigned int value, size_t count)
{
	return set(destination, value, 4, count, false, NULL);
}

CUresult sim_memset_d8_async(CUdeviceptr destination, unsigned char value, size_t count,
			     CUstream stream)
{
	return set(destination, value, 1, count, true, stream);
}

CUresult sim_memset_d16_async(CUdeviceptr destination, unsigned short value, size_t count,
			      CUstream stream)
{
	return set(destination, value, 2, count, true, stream);
}

CUresult sim_memset_d32_async(CUdeviceptr destination, unsigned int value, size_t count,
			      CUstream stream)
{
	return set(destination, value, 4, count, true, stream);
}
