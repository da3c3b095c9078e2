/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold half of a ring: its end, and what happens when it is full. Runs in the application's
 * threads: no lock, no malloc; ring_wait_for_room() sleeps.
 */
#include <errno.h>

#include "inject/runtime/clock.h"
#include "inject/capture/thread_buffer.h"
#include "inject/runtime/sleep.h"

#define NAP_NS 200000

atomic_bool lanes_are_stalled;

bool ring_turn(struct lane *lane, uint32_t bytes)
{
	uint64_t pos = lane->write_pos;
	uint32_t place = pos & (RING_DATA_BYTES - 1);
	uint32_t to_end = RING_DATA_BYTES - place;
	struct xt_record *pad = (struct xt_record *)(lane->data + place);

	/* Pairs with the release in lane_widen(): what is behind the window is there. */
	lane->window = atomic_load_explicit(&lane->window_ready, memory_order_acquire);
	if (place + bytes <= lane->window)
		return true;
	if (pos + to_end + bytes - lane->free_pos_seen > RING_DATA_BYTES) {
		/* Pairs with ring_free(), as in ring_reserve(). */
		lane->free_pos_seen = __atomic_load_n(&lane->ring->free_pos, __ATOMIC_ACQUIRE);
		if (pos + to_end + bytes - lane->free_pos_seen > RING_DATA_BYTES)
			return false;
	}
	/* A pad may be longer than its field: it always reaches to the end. */
	pad->type = XT_RECORD_PAD;
	pad->bytes = 0;
	lane->write_pos = pos + to_end;
	return true;
}

void *ring_wait_for_room(struct lane *lane, uint32_t bytes)
{
	uint64_t *waited_ns = &lane->ring->counters[XT_RING_WAITED_NS];
	uint64_t start_ns, now_ns;
	int saved_errno = errno;
	bool is_stalled = false;
	void *place = NULL;

	if (atomic_load_explicit(&lanes_are_stalled, memory_order_relaxed) ||
	    (lane->gave_up_at && lane->gave_up_at == lane->free_pos_seen + 1))
		return NULL;
	start_ns = now_ns = monotonic_ns();
	while (!place && !is_stalled && now_ns - start_ns < RING_PATIENCE_NS) {
		xt_sleep_ns(NAP_NS);
		place = ring_reserve(lane, bytes);
		now_ns = monotonic_ns();
		is_stalled = atomic_load_explicit(&lanes_are_stalled, memory_order_relaxed);
	}
	lane->gave_up_at = place || is_stalled ? 0 : lane->free_pos_seen + 1;
	lane_add(waited_ns, now_ns - start_ns);
	lane_add(&lane->rare_ns, now_ns - start_ns);
	errno = saved_errno;
	return place;
}
