/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/allocation_retry.h"

#include "inject/capture/ring.h"
#include "inject/cupti/api_table.h"
#include "log/base/call_result.h"

#define RETRY_NS UINT64_C(1000000000)

static uint32_t waiting_count; /* threads with a failed allocation */

static void forget(struct thread_buffer *tb)
{
	waiting_count -= tb->failed_alloc_ns != 0;
	tb->failed_alloc_ns = 0;
}

static void wait_for_retry(struct thread_buffer *tb, const struct xt_record_call *record)
{
	waiting_count += tb->failed_alloc_ns == 0;
	tb->failed_alloc_ns = record->exit_ns;
	tb->failed_alloc_api = record->api;
}

static bool makes_work(uint32_t class)
{
	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH || class == XT_API_COPY ||
	       class == XT_API_SET;
}

bool allocation_retry_call(struct thread_buffer *tb, const struct xt_record_call *record)
{
	uint32_t class = api_class(record->api);

	if (record->result == XT_RESULT_OUT_OF_MEMORY) {
		if (class != XT_API_ALLOC)
			return true;
		wait_for_retry(tb, record);
		return false;
	}
	if (!tb->failed_alloc_ns)
		return false;
	if (makes_work(class)) {
		forget(tb);
		return true;
	}
	if (record->api == tb->failed_alloc_api)
		forget(tb);
	else
		tb->failed_alloc_ns = record->exit_ns;
	return false;
}

static bool is_in_call(const struct thread_buffer *tb)
{
	return __atomic_load_n(&tb->ring->open_count, __ATOMIC_ACQUIRE) != 0;
}

bool allocation_retry_is_over(uint64_t now_ns)
{
	uint32_t count = waiting_count ? thread_buffer_count() : 0;
	bool is_over = false;

	for (uint32_t i = 0; i < count; i++) {
		struct thread_buffer *tb = thread_buffer_at(i);

		if (!tb || !tb->failed_alloc_ns)
			continue;
		/* A thread that has ended does not retry. */
		if (atomic_load(&tb->state) != THREAD_BUFFER_FREE &&
		    (ring_written(tb) != tb->read_pos || is_in_call(tb) ||
		     now_ns < tb->failed_alloc_ns + RETRY_NS))
			continue;
		is_over = true;
		forget(tb);
	}
	return is_over;
}
