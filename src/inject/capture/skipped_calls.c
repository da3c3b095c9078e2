/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/capture/skipped_calls.h"

#include "inject/capture/ring.h"
#include "inject/cupti/api_table.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/runtime/hotpath.h"

/* Records the correlation id of a call, by which the writer drops its GPU work. */
static void record_skip(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	unsigned causes = atomic_load(&recording_paused);
	struct xt_record_skip *record;

	/* The user asked for no other pause, so the call is lost. */
	if ((causes & ~(unsigned)PAUSED_SHUTDOWN) == PAUSED_SIZE)
		counter_add(&tb->ring->size_drop_count, 1);
	if (!atomic_load(&cupti_subscriber_records_calls)) /* nor is its work recorded */
		return;
	record = ring_reserve_or_wait(tb, sizeof(*record));
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_SKIPS_LOST);
		return;
	}
	record->head.type = causes == PAUSED_SHUTDOWN ? XT_RECORD_SHUTDOWN_DROP : XT_RECORD_SKIP;
	record->head.bytes = sizeof(*record);
	record->correlation_id = data->correlation_id;
	ring_commit(tb, sizeof(*record));
}

COLD void skipped_call_enter(struct thread_buffer *tb, uint32_t use,
			     const struct cupti_callback_data *data)
{
	bool is_shutdown = atomic_load(&recording_paused) == PAUSED_SHUTDOWN;
	bool makes_work = (use & (API_MAKES_WORK | API_LAUNCHES_GRAPH)) == API_MAKES_WORK;
	uint64_t hold = GRAPH_HOLD_NONE, mark = CALL_IS_SHUTDOWN_DROP;

	if (data->correlation_data) {
		/* A launch of a graph is a holder, skipped or not. */
		if (makes_work && !is_shutdown)
			hold = graph_level_enter_call();
		/* Without a mark, EXIT may tell that records have started since. */
		if (!is_shutdown)
			mark = hold || atomic_load(&cupti_subscriber_records_calls)
				       ? CALL_IS_SKIPPED | hold << HOLD_AT
				       : 0;
		*data->correlation_data = mark;
	}
	record_skip(tb, data);
}

static bool is_shutdown_drop(const struct cupti_callback_data *data)
{
	return data->correlation_data && *data->correlation_data == CALL_IS_SHUTDOWN_DROP;
}

COLD bool skipped_call_began_unseen(struct thread_buffer *tb,
				    const struct cupti_callback_data *data)
{
	if (!atomic_load(&recording_was_paused) || tb->ring->open_count || is_shutdown_drop(data))
		return false;
	record_skip(tb, data);
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
