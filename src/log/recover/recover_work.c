/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses CUPTI activity buffers without CUPTI. The tracer stores the record sizes that CUPTI showed
 * it in the crash buffer. For a kind that it had not seen twice in a row, a table gives the size in
 * each CUPTI version.
 */
#include "log/recover/recover_work.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cuda_abi/cupti_record_bytes.h"

#define RECORD_BYTES_MAX 4096
#define BYTES_UP_TO(type, field)                                                                   \
	(offsetof(struct type, field) + sizeof(((struct type *)NULL)->field))

static void like_kernel(struct recovery_work *work, const uint8_t *record, size_t bytes)
{
	struct cupti_activity_kernel kernel = {0};

	memcpy(&kernel, record, bytes < sizeof(kernel) ? bytes : sizeof(kernel));
	*work = (struct recovery_work){
		.kind = XT_KIND_KERNEL,
		.correlation_id = kernel.correlation_id,
		.place = {kernel.device_id, kernel.context_id, kernel.stream_id},
		.start_ns = kernel.start_ns,
		.end_ns = kernel.end_ns,
		.graph_node_id = kernel.graph_node_id,
		.name = (uintptr_t)kernel.name,
		.like = {(uint32_t)kernel.grid[0], (uint32_t)kernel.grid[1],
			 (uint32_t)kernel.grid[2], (uint32_t)kernel.block[0],
			 (uint32_t)kernel.block[1], (uint32_t)kernel.block[2],
			 (uint32_t)kernel.static_shared_bytes,
			 (uint32_t)kernel.dynamic_shared_bytes, kernel.registers_per_thread},
	};
}

static void like_copy(struct recovery_work *work, const uint8_t *record, size_t bytes)
{
	struct cupti_activity_memcpy copy = {0};

	memcpy(&copy, record, bytes < sizeof(copy) ? bytes : sizeof(copy));
	*work = (struct recovery_work){
		.kind = XT_KIND_COPY,
		.correlation_id = copy.correlation_id,
		.place = {copy.device_id, copy.context_id, copy.stream_id},
		.start_ns = copy.start_ns,
		.end_ns = copy.end_ns,
		.graph_node_id = copy.graph_node_id,
		.bytes = copy.bytes,
		.like = {copy.copy_kind, copy.source_kind, copy.destination_kind,
			 copy.flags & XT_CUPTI_FLAG_ASYNC},
	};
}

_Static_assert(offsetof(struct cupti_activity_memcpy, stream_id) ==
		       offsetof(struct cupti_activity_memcpy_peer, stream_id),
	       "up to the stream, both kinds of copies are the same");

static void like_peer_copy(struct recovery_work *work, const uint8_t *record, size_t bytes)
{
	struct cupti_activity_memcpy_peer copy = {0};

	memcpy(&copy, record, bytes < sizeof(copy) ? bytes : sizeof(copy));
	like_copy(work, record, offsetof(struct cupti_activity_memcpy, correlation_id));
	work->correlation_id = copy.correlation_id;
	work->graph_node_id = copy.graph_node_id;
	work->like[4] = copy.source_device_id + 1;
	work->like[5] = copy.destination_device_id + 1;
}

static void like_set(struct recovery_work *work, const uint8_t *record, size_t bytes)
{
	struct cupti_activity_memset set = {0};

	memcpy(&set, record, bytes < sizeof(set) ? bytes : sizeof(set));
	*work = (struct recovery_work){
		.kind = XT_KIND_SET,
		.correlation_id = set.correlation_id,
		.place = {set.device_id, set.context_id, set.stream_id},
		.start_ns = set.start_ns,
		.end_ns = set.end_ns,
		.graph_node_id = set.graph_node_id,
		.bytes = set.bytes,
		.like = {set.memory_kind},
	};
}

static void like_memory(struct recovery_work *work, const uint8_t *record, size_t bytes)
{
	struct cupti_activity_memory memory = {0};

	memcpy(&memory, record, bytes < sizeof(memory) ? bytes : sizeof(memory));
	*work = (struct recovery_work){
		.kind = XT_KIND_MEMORY,
		.correlation_id = memory.correlation_id,
		.place = {memory.device_id, memory.memory_kind, memory.operation},
		.start_ns = memory.timestamp_ns,
		.end_ns = memory.timestamp_ns,
		.address = memory.address,
		.bytes = memory.bytes,
	};
}

static void like_graph(struct recovery_work *work, const uint8_t *record, size_t bytes)
{
	struct cupti_activity_graph_trace graph = {0};

	memcpy(&graph, record, bytes < sizeof(graph) ? bytes : sizeof(graph));
	*work = (struct recovery_work){
		.kind = XT_KIND_KERNEL,
		.correlation_id = graph.correlation_id,
		.place = {graph.device_id, graph.context_id, graph.stream_id},
		.start_ns = graph.start_ns,
		.end_ns = graph.end_ns,
		.graph_node_id = (uint64_t)graph.graph_id << 32 | XT_NODE_WHOLE_GRAPH,
	};
}

/* The parser of each kind, and the bytes it needs. A shorter record is invalid. */
static const struct kind {
	void (*take)(struct recovery_work *work, const uint8_t *record, size_t bytes);
	size_t bytes_min;
} kinds[XT_CRASH_BUFFER_RECORD_KINDS] = {
#define KIND(function, type, last_field)                                                           \
	{                                                                                          \
		function, BYTES_UP_TO(type, last_field)                                            \
	}
	[XT_CUPTI_ACTIVITY_KERNEL] = KIND(like_kernel, cupti_activity_kernel, graph_node_id),
	[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL] =
		KIND(like_kernel, cupti_activity_kernel, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMCPY] = KIND(like_copy, cupti_activity_memcpy, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMCPY2] =
		KIND(like_peer_copy, cupti_activity_memcpy_peer, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMSET] = KIND(like_set, cupti_activity_memset, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMORY2] = KIND(like_memory, cupti_activity_memory, stream_id),
	[XT_CUPTI_ACTIVITY_GRAPH_TRACE] = KIND(like_graph, cupti_activity_graph_trace, stream_id),
#undef KIND
};

/* The times show whether the record is complete, so ignore the begun flag. */
static uint32_t kind_at(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind & ~XT_CUPTI_RECORD_BEGUN;
}

/* Size of a record of that kind; 0 if unknown. */
static size_t record_bytes(const struct recovery *recovery, uint32_t kind)
{
	const struct xt_crash_buffer_header *crash_buffer = recovery->crash_buffer;
	size_t bytes;

	if (kind >= XT_CRASH_BUFFER_RECORD_KINDS)
		return 0;
	bytes = crash_buffer->record_bytes[kind];
	if (!bytes && kinds[kind].take)
		bytes = xt_cupti_record_bytes(crash_buffer->cupti_version, kind);
	if (bytes < sizeof(uint64_t) || bytes < kinds[kind].bytes_min || bytes > RECORD_BYTES_MAX ||
	    bytes % 8)
		return 0;
	return bytes;
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (data[i])
			return false;
	return true;
}

/*
 * Returns the end of the records: the end of the data, or zeros after the last record. *is_whole is
 * false if something else follows.
 */
static size_t find_end(const struct recovery *recovery, const uint8_t *data, size_t data_bytes,
		       bool *is_whole)
{
	size_t pos = 0;

	while (data_bytes - pos >= sizeof(uint64_t)) {
		uint32_t kind;
		size_t bytes;

		kind = kind_at(data + pos);
		bytes = kind ? record_bytes(recovery, kind) : 0;
		if (!bytes || bytes > data_bytes - pos)
			break;
		pos += bytes;
	}
	*is_whole = is_zero(data + pos, data_bytes - pos);
	return pos;
}

/* Whether the record size of kernels is only assumed, from an older CUPTI version. */
static bool is_guess(const struct recovery *recovery)
{
	return recovery->crash_buffer->cupti_version >= XT_CUPTI_RECORD_VERSIONS_END &&
	       !recovery->crash_buffer->record_bytes[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL];
}

bool recovery_take_buffer(struct recovery *recovery, const uint8_t *data, size_t data_bytes,
			  bool at_cupti)
{
	bool is_whole;
	size_t end = find_end(recovery, data, data_bytes, &is_whole);

	if (!is_whole && is_guess(recovery)) {
		recovery->out->areas_unknown++;
		return true;
	}
	for (size_t pos = 0; pos < end;) {
		struct recovery_work *work;
		uint32_t kind;

		kind = kind_at(data + pos);
		if (recovery->work_count >= RECOVERY_WORK_COUNT_MAX)
			return false;
		if (!recovery_grow(&recovery->work, &recovery->work_capacity, recovery->work_count,
				   sizeof(*recovery->work))) {
			recovery->error = -ENOMEM;
			return true;
		}
		if (kinds[kind].take) {
			work = &recovery->work[recovery->work_count++];
			kinds[kind].take(work, data + pos, record_bytes(recovery, kind));
			work->at_cupti = at_cupti;
		}
		pos += record_bytes(recovery, kind);
	}
	/* If the buffer begins with zeros, it was being cleared: its records are in the log. */
	return is_whole || end == 0;
}
