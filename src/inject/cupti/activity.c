/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's two buffer callbacks. They run on threads of the program or of CUPTI, in the
 * middle of a launch or a flush. They take no lock, call no malloc, and make system calls only if
 * the pool is empty (activity_pool.c).
 */
#include "inject/cupti/activity.h"

#include <string.h>

#include "inject/cupti/activity_pool.h"

atomic_uint_fast64_t activity_discarded;
atomic_uint_fast64_t activity_invalid;

_Atomic(xt_cupti_buffer_completed) activity_foreign_completed;

static atomic_uint_fast64_t completions;
static atomic_bool abandoned;

/*
 * CUPTI crashes if it gets no buffer, so it gets one of these, whose records are discarded.
 *
 * Each is lent only once at a time. If two threads wrote to one buffer, its records would never
 * look complete, and CUPTI would keep it and scan it at each flush. The last buffer is shared once
 * all others are lent.
 */
#define DISCARD_BUFFERS 64
#define DISCARD_BYTES	(64u << 10)
static _Alignas(64) uint8_t discard_data[DISCARD_BUFFERS][DISCARD_BYTES];
static atomic_bool discard_is_lent[DISCARD_BUFFERS];

static uint8_t *lend_discard_buffer(void)
{
	for (unsigned d = 0; d < DISCARD_BUFFERS - 1; d++)
		if (!atomic_load_explicit(&discard_is_lent[d], memory_order_relaxed) &&
		    !atomic_exchange(&discard_is_lent[d], true))
			return discard_data[d];
	return discard_data[DISCARD_BUFFERS - 1];
}

static bool is_discard_buffer(const uint8_t *buffer)
{
	return buffer >= discard_data[0] && buffer < discard_data[DISCARD_BUFFERS];
}

/* CUPTI expects each buffer zeroed. */
static void return_discard_buffer(uint8_t *buffer)
{
	size_t d = (size_t)(buffer - discard_data[0]) / DISCARD_BYTES;

	if (d == DISCARD_BUFFERS - 1)
		return;
	memset(discard_data[d], 0, DISCARD_BYTES);
	atomic_store(&discard_is_lent[d], false);
}

void activity_requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out)
{
	bool ours = !atomic_load_explicit(&abandoned, memory_order_relaxed);
	uint8_t *data = ours ? activity_take_free() : NULL;

	if (!data && ours)
		data = activity_make_or_wait();
	*max_records_out = 0;
	if (data) {
		*buffer_out = data;
		*bytes_out = ACTIVITY_DATA_BYTES;
		return;
	}
	*buffer_out = lend_discard_buffer();
	*bytes_out = DISCARD_BYTES;
}

void activity_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
			size_t valid_bytes)
{
	struct xt_activity_header *header = activity_header_of(buffer);
	xt_cupti_buffer_completed foreign = atomic_load(&activity_foreign_completed);

	if (!header && !is_discard_buffer(buffer)) {
		if (foreign)
			foreign(context, stream_id, buffer, bytes, valid_bytes);
		return;
	}
	if (atomic_load_explicit(&abandoned, memory_order_relaxed))
		return;
	if (!header) {
		atomic_fetch_add(&activity_discarded, 1);
		return_discard_buffer(buffer);
		return;
	}
	/*
	 * Do not trust CUPTI's size: memory behind the buffer is not ours. A buffer completed twice
	 * may already belong to the writer.
	 */
	if (valid_bytes > ACTIVITY_DATA_BYTES) {
		atomic_fetch_add(&activity_invalid, 1);
		valid_bytes = ACTIVITY_DATA_BYTES;
	}
	if (!activity_complete(header, valid_bytes, atomic_fetch_add(&completions, 1) + 1))
		atomic_fetch_add(&activity_invalid, 1);
}

void activity_abandon(void)
{
	atomic_store(&abandoned, true);
}
