/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a thread buffer: how a thread reserves room and commits records, and how the writer
 * frees them.
 */
#ifndef XT_INJECT_RING_H
#define XT_INJECT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/capture/thread_buffer.h"

/* True while the log cannot be written; then threads do not wait. Set by thread_buffers_stall(). */
extern atomic_bool thread_buffers_are_stalled;

/*
 * Moves write_pos to where a record fits into the window, wrapping if needed. False if there is no
 * room yet. Called once per turn of the ring.
 */
bool ring_turn(struct thread_buffer *tb, uint32_t bytes);

/*
 * Reserves room for a record (bytes: a multiple of 8) that does not wrap; NULL if the ring is full.
 * ring_commit() of the same size publishes it. Hot path.
 */
static inline void *ring_reserve(struct thread_buffer *tb, uint32_t bytes)
{
	uint32_t place = tb->write_pos & (RING_DATA_BYTES - 1);

	if (__builtin_expect(place + bytes > tb->window, 0)) {
		if (!ring_turn(tb, bytes))
			return NULL;
		place = tb->write_pos & (RING_DATA_BYTES - 1);
	}
	if (tb->write_pos + bytes - tb->free_pos_seen > RING_DATA_BYTES) {
		/* Pairs with ring_free(): the writer has read what is overwritten now. */
		tb->free_pos_seen = __atomic_load_n(&tb->ring->free_pos, __ATOMIC_ACQUIRE);
		if (tb->write_pos + bytes - tb->free_pos_seen > RING_DATA_BYTES)
			return NULL;
	}
	return tb->data + place;
}

/*
 * Waits up to RING_TIMEOUT_NS for the writer, which may lack a processor. After a timeout, does not
 * wait again until the writer made room. NULL if it did not. Cold path: sleeps.
 */
#define RING_TIMEOUT_NS 1000000000
void *ring_wait_for_room(struct thread_buffer *tb, uint32_t bytes);

/* Like ring_reserve(), but waits instead of losing the record. */
static inline void *ring_reserve_or_wait(struct thread_buffer *tb, uint32_t bytes)
{
	void *place = ring_reserve(tb, bytes);

	return place ? place : ring_wait_for_room(tb, bytes);
}

static inline void ring_commit(struct thread_buffer *tb, uint32_t bytes)
{
	tb->write_pos += bytes;
	/* Pairs with the writer's acquire in ring_written(). */
	__atomic_store_n(&tb->ring->write_pos, tb->write_pos, __ATOMIC_RELEASE);
}

static inline uint64_t ring_written(const struct thread_buffer *tb)
{
	return __atomic_load_n(&tb->ring->write_pos, __ATOMIC_ACQUIRE);
}

static inline void ring_free(struct thread_buffer *tb, uint64_t pos)
{
	/* Pairs with the acquire in ring_reserve(). */
	__atomic_store_n(&tb->ring->free_pos, pos, __ATOMIC_RELEASE);
}

#endif
