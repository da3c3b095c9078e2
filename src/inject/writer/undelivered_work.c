/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI writes its buffers on other threads. So each word is read only once. The race is intended,
 * hence no thread sanitizer.
 */
#include "inject/writer/undelivered_work.h"

#include "cuda_abi/cupti_record_bytes.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer.h"

#define RECORD_BYTES_MAX 4096 /* longer than any CUPTI record */

static uint32_t learned_bytes[XT_CRASH_BUFFER_RECORD_KINDS];

void undelivered_learn_bytes(const struct cupti_activity *record, const struct cupti_activity *next)
{
	ptrdiff_t bytes = (const uint8_t *)next - (const uint8_t *)record;

	if (record->kind >= XT_CRASH_BUFFER_RECORD_KINDS || bytes <= 0 ||
	    bytes > RECORD_BYTES_MAX ||
	    (learned_bytes[record->kind] && learned_bytes[record->kind] <= (uint32_t)bytes))
		return;
	learned_bytes[record->kind] = (uint32_t)bytes;
	crash_buffer_record_bytes(record->kind, (uint32_t)bytes);
}

uint32_t undelivered_record_bytes(uint32_t kind)
{
	uint32_t bytes = kind < XT_CRASH_BUFFER_RECORD_KINDS ? learned_bytes[kind] : 0;

	if (!bytes)
		bytes = xt_cupti_record_bytes(cupti.version, kind);
	return bytes % 8 ? 0 : bytes;
}

/* Offsets of a record's times, by kind; unknown for kinds not listed. */
static const struct {
	size_t start, end;
} times[] = {
#define TIMES(type, first, last)                                                                   \
	{                                                                                          \
		offsetof(struct type, first), offsetof(struct type, last)                          \
	}
	[XT_CUPTI_ACTIVITY_KERNEL] = TIMES(cupti_activity_kernel, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL] = TIMES(cupti_activity_kernel, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMCPY] = TIMES(cupti_activity_memcpy, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMCPY2] = TIMES(cupti_activity_memcpy_peer, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMSET] = TIMES(cupti_activity_memset, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMORY2] = TIMES(cupti_activity_memory, timestamp_ns, timestamp_ns),
	[XT_CUPTI_ACTIVITY_GRAPH_TRACE] = TIMES(cupti_activity_graph_trace, start_ns, end_ns),
#undef TIMES
};

__attribute__((no_sanitize("thread"))) static void
count_record(struct undelivered_work *undelivered, const uint8_t *record, uint32_t word)
{
	uint32_t kind = word & ~XT_CUPTI_RECORD_BEGUN;
	uint64_t end_ns;

	if (kind >= sizeof(times) / sizeof(*times) || !times[kind].start ||
	    kind == XT_CUPTI_ACTIVITY_MEMORY2)
		return;
	undelivered->kernel_count +=
		kind == XT_CUPTI_ACTIVITY_KERNEL || kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL;
	end_ns = __atomic_load_n((const uint64_t *)(record + times[kind].end), __ATOMIC_RELAXED);
	if (word & XT_CUPTI_RECORD_BEGUN || !end_ns)
		undelivered->unfinished_count++;
	else
		undelivered->finished_count++;
}

__attribute__((no_sanitize("thread"))) bool
find_undelivered_work(struct undelivered_work *undelivered)
{
	const size_t end = ACTIVITY_DATA_BYTES - sizeof(struct cupti_activity_kernel);
	struct activity_buffer *buffer;
	uint32_t index = 0;

	*undelivered = (struct undelivered_work){0};
	while ((buffer = activity_next_unread(&index))) {
		for (size_t place = 0; place <= end;) {
			const uint8_t *record = buffer->data + place;
			uint32_t word = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
			uint32_t bytes = undelivered_record_bytes(word & ~XT_CUPTI_RECORD_BEGUN);

			if (!word)
				break;
			if (!bytes)
				return false;
			count_record(undelivered, record, word);
			place += bytes;
		}
	}
	return true;
}

__attribute__((no_sanitize("thread"))) bool cupti_holds_unfinished_work(uint64_t since_ns)
{
	struct activity_buffer *buffer;
	uint32_t index = 0;

	while ((buffer = activity_next_at_cupti(&index))) {
		uint32_t kind = __atomic_load_n((uint32_t *)buffer->data, __ATOMIC_RELAXED);
		uint64_t start_ns, end_ns;

		if (kind >= sizeof(times) / sizeof(*times) || !times[kind].start)
			continue;
		start_ns = __atomic_load_n((uint64_t *)(buffer->data + times[kind].start),
					   __ATOMIC_RELAXED);
		end_ns = __atomic_load_n((uint64_t *)(buffer->data + times[kind].end),
					 __ATOMIC_RELAXED);
		if (start_ns && start_ns <= end_ns && end_ns < since_ns)
			return true;
	}
	return false;
}
