/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/capture/skipped_calls.h"

#include "inject/capture/ring.h"
#include "inject/cupti/api_table.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/hotpath.h"

/* Records the correlation id of a call, by which the writer drops its GPU work. */
static void record_skip(struct thread_buffer *tb, const struct cupti_callback_data *data,
			enum xt_record_type type)
{
	struct xt_record_skip *record = ring_reserve_or_wait(tb, sizeof(*record));

	if (!record) {
		thread_buffer_count_up(tb, XT_RING_SKIPS_LOST);
		return;
	}
	record->head.type = (uint16_t)type;
	record->head.bytes = sizeof(*record);
	record->correlation_id = data->correlation_id;
	ring_commit(tb, sizeof(*record));
}

/* Leaves the hold only once, even if a signal handler jumps out of this function. */
static void leave_hold(struct thread_buffer *tb)
{
	uint8_t hold = tb->call_hold;

	tb->call_hold = GRAPH_HOLD_NONE;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	graph_level_leave(hold);
}

/*
 * Calls that make work do not nest. So an open one was left by a jump, or ended while another tool
 * had CUPTI. A stop would wait for it, or for its hold, in vain.
 */
static void drop_left_calls(struct thread_buffer *tb)
{
	struct xt_ring_header *ring = tb->ring;

	for (uint32_t i = 0; i < ring->open_count; i++)
		if (api_uses[ring->open_calls[i].api & (API_CBID_END - 1)] & API_MAKES_WORK)
			__atomic_store_n(&ring->open_count, i, __ATOMIC_RELEASE);
	leave_hold(tb);
}

COLD void skipped_call_enter(struct thread_buffer *tb, uint32_t use,
			     const struct cupti_callback_data *data)
{
	unsigned causes = atomic_load(&recording_paused) & ~(unsigned)PAUSED_CHANGING;
	bool is_shutdown = causes == PAUSED_SHUTDOWN;
	uint64_t mark = is_shutdown ? CALL_IS_SHUTDOWN_DROP : CALL_IS_SKIPPED;

	/* The user asked for no other pause, so the call is lost. */
	if ((causes & ~(unsigned)PAUSED_SHUTDOWN) == PAUSED_SIZE)
		counter_add(&tb->ring->size_drop_count, 1);
	/* A launch of a graph is a holder, skipped or not. */
	if ((use & (API_MAKES_WORK | API_LAUNCHES_GRAPH)) == API_MAKES_WORK && !is_shutdown &&
	    data->correlation_data) {
		drop_left_calls(tb);
		tb->call_hold = graph_level_enter_call();
		mark |= CALL_HOLDS;
	}
	if (is_shutdown)
		record_skip(tb, data, XT_RECORD_SHUTDOWN_DROP);
	else if (atomic_load(&cupti_subscriber_records_calls))
		record_skip(tb, data, XT_RECORD_SKIP);
	else /* its work is not recorded either, unless recording starts before EXIT */
		mark |= CALL_IS_UNRECORDED;
	if (data->correlation_data)
		*data->correlation_data = mark;
}

COLD void skipped_call_leave(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	uint64_t mark = *data->correlation_data;

	*data->correlation_data = 0;
	if (mark & CALL_IS_UNRECORDED && atomic_load(&cupti_subscriber_records_calls))
		record_skip(tb, data, XT_RECORD_SKIP);
	if (mark & CALL_HOLDS)
		leave_hold(tb);
}

static bool is_shutdown_drop(const struct cupti_callback_data *data)
{
	return data->correlation_data && *data->correlation_data == CALL_IS_SHUTDOWN_DROP;
}

COLD bool skipped_call_began_unseen(struct thread_buffer *tb,
				    const struct cupti_callback_data *data)
{
	bool is_stopped = !atomic_load(&cupti_subscriber_records_calls);

	if (!atomic_load(&recording_was_paused) || is_shutdown_drop(data) ||
	    (tb->ring->open_count && !is_stopped))
		return false;
	if (!is_stopped)
		record_skip(tb, data, XT_RECORD_SKIP);
	return true;
}

COLD void skipped_call_count_unmatched(struct thread_buffer *tb,
				       const struct cupti_callback_data *data)
{
	if (is_shutdown_drop(data))
		counter_add_lost(&tb->ring->shutdown_drop_count, 1);
	else
		thread_buffer_count_lost(tb, XT_RING_LOST_NESTED);
}
