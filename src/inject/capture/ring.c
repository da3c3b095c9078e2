/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold part of a ring: its end, and waiting for room. Runs in the program's threads: no lock,
 * no malloc; ring_wait_for_room() sleeps.
 */
#include "inject/capture/ring.h"

#include <errno.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/hot_state.h"

#define NAP_NS 200000

atomic_bool thread_buffers_are_stalled;

bool ring_turn(struct thread_buffer *tb, uint32_t bytes)
{
	uint64_t pos = tb->write_pos;
	uint32_t place = pos & (RING_DATA_BYTES - 1);
	uint32_t to_end = RING_DATA_BYTES - place;
	struct xt_record *pad = (struct xt_record *)(tb->data + place);

	/* Pairs with the release in thread_buffer_widen(): the added pages are touched. */
	tb->window = atomic_load_explicit(&tb->window_ready, memory_order_acquire);
	if (place + bytes <= tb->window)
		return true;
	if (pos + to_end + bytes - tb->free_pos_seen > RING_DATA_BYTES) {
		/* Pairs with ring_free(), as in ring_reserve(). */
		tb->free_pos_seen = __atomic_load_n(&tb->ring->free_pos, __ATOMIC_ACQUIRE);
		if (pos + to_end + bytes - tb->free_pos_seen > RING_DATA_BYTES)
			return false;
	}
	/* A pad extends to the end of the ring; its `bytes` field may be too small for that. */
	pad->type = XT_RECORD_PAD;
	pad->bytes = 0;
	tb->write_pos = pos + to_end;
	return true;
}

void *ring_wait_for_room(struct thread_buffer *tb, uint32_t bytes)
{
	uint64_t *waited_ns = &tb->ring->counters[XT_RING_WAITED_NS];
	uint64_t start_ns, now_ns;
	int saved_errno = errno;
	bool is_stalled = false;
	void *place = NULL;

	if (atomic_load_explicit(&thread_buffers_are_stalled, memory_order_relaxed) ||
	    (tb->backoff_pos && tb->backoff_pos == tb->free_pos_seen + 1))
		return NULL;
	start_ns = now_ns = monotonic_ns();
	while (!place && !is_stalled && now_ns - start_ns < RING_TIMEOUT_NS) {
		xt_sleep_ns(NAP_NS);
		place = ring_reserve(tb, bytes);
		now_ns = monotonic_ns();
		is_stalled =
			atomic_load_explicit(&thread_buffers_are_stalled, memory_order_relaxed);
	}
	tb->backoff_pos = place || is_stalled ? 0 : tb->free_pos_seen + 1;
	counter_add(waited_ns, now_ns - start_ns);
	counter_add(&tb->slow_path_ns, now_ns - start_ns);
	errno = saved_errno;
	return place;
}
