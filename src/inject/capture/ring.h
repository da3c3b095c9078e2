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

/* Set by thread_buffers_stall(). */
extern atomic_bool thread_buffers_are_stalled;

/*
 * Moves write_pos to where a record of bytes has room in the window, at the front if need be. False
 * if there is none, yet. Once a turn of the ring.
 */
bool ring_turn(struct thread_buffer *tb, uint32_t bytes);

/* Room for a record of bytes (a multiple of 8) that does not wrap, or NULL. The record becomes
 * visible with ring_commit() of the same size. Hot path. */
static inline void *ring_reserve(struct thread_buffer *tb, uint32_t bytes)
{
	uint32_t place = tb->write_pos & (RING_DATA_BYTES - 1);

	if (__builtin_expect(place + bytes > tb->window, 0)) {
		if (!ring_turn(tb, bytes))
			return NULL;
		place = tb->write_pos & (RING_DATA_BYTES - 1);
	}
	if (tb->write_pos + bytes - tb->free_pos_seen > RING_DATA_BYTES) {
		/* Pairs with ring_free(): what is overwritten now has been read. */
		tb->free_pos_seen = __atomic_load_n(&tb->ring->free_pos, __ATOMIC_ACQUIRE);
		if (tb->write_pos + bytes - tb->free_pos_seen > RING_DATA_BYTES)
			return NULL;
	}
	return tb->data + place;
}

/*
 * The writer is behind, most likely because all processors are taken: waits for it, at most
 * RING_TIMEOUT_NS, and not again until it has made room. NULL if it did not. Cold path: sleeps.
 */
#define RING_TIMEOUT_NS 1000000000
void *ring_wait_for_room(struct thread_buffer *tb, uint32_t bytes);

/* As ring_reserve(), but rather waits a moment than loses the record. */
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
