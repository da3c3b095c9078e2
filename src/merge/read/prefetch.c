/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of chunks that two threads decode. One is the helper thread. The other is the thread that
 * uses the chunks, whenever the next one is not decoded yet. So the user waits only for a chunk
 * that the helper has already begun.
 *
 * The lock protects the reader and the ring. Chunks are decoded without it. It is taken a few times
 * per chunk, which usually has tens of thousands of rows.
 */
#include "merge/read/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/* The chunks in the ring, the one in use included. The ring is full at either limit. */
#define CHUNKS	   16
#define ROWS_AHEAD (128u << 10)

struct slot {
	struct xt_chunk *chunk;
	uint64_t end_offset; /* in the log */
	uint64_t skipped;    /* damaged chunks that were skipped before this one was fetched */
	bool is_decoded;
	bool is_intact; /* valid once it is decoded */
};

struct prefetch {
	struct xt_reader *reader;
	uint32_t wanted_kinds;
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t decoded; /* the user waits for it */
	pthread_cond_t freed;	/* the helper waits for it */
	/* Protected by the lock. */
	struct slot slots[CHUNKS];
	struct xt_chunk *unused[CHUNKS]; /* a stack: the latest is most likely in the cache */
	size_t unused_count;
	uint64_t first;	  /* the oldest slot in use; slots are numbered from the first chunk on */
	uint64_t fetched; /* behind the newest */
	uint64_t row_count;
	uint64_t damaged_count; /* damaged chunks that were fetched */
	bool user_waits, helper_waits;
	bool ended; /* all chunks are fetched */
	bool stopping;
	/* Used only by the thread that uses the chunks. */
	bool has_chunk; /* it uses the first slot */
	struct slot current;
};

static struct slot *slot_at(struct prefetch *prefetch, uint64_t number)
{
	return &prefetch->slots[number % CHUNKS];
}

/* Returns a slot with the next chunk, not decoded yet. NULL if the ring is full or the log ends. */
static struct slot *fetch(struct prefetch *prefetch)
{
	struct slot *slot = slot_at(prefetch, prefetch->fetched);
	struct xt_chunk *chunk;
	uint64_t all_bytes;

	if (prefetch->ended || !prefetch->unused_count || prefetch->row_count >= ROWS_AHEAD)
		return NULL;
	chunk = prefetch->unused[prefetch->unused_count - 1];
	if (!xt_reader_fetch(prefetch->reader, prefetch->wanted_kinds, chunk)) {
		prefetch->ended = true;
		return NULL;
	}
	prefetch->unused_count--;
	*slot = (struct slot){
		.chunk = chunk,
		.skipped = xt_reader_damage(prefetch->reader)->chunks_damaged -
			   prefetch->damaged_count,
	};
	xt_reader_position(prefetch->reader, &slot->end_offset, &all_bytes);
	prefetch->row_count += xt_chunk_rows(chunk);
	prefetch->fetched++;
	return slot;
}

static void decode(struct prefetch *prefetch, struct slot *slot)
{
	bool is_intact;

	pthread_mutex_unlock(&prefetch->lock);
	is_intact = xt_chunk_decode(slot->chunk);
	pthread_mutex_lock(&prefetch->lock);
	slot->is_intact = is_intact;
	slot->is_decoded = true;
	if (prefetch->user_waits)
		pthread_cond_signal(&prefetch->decoded);
}

static void *decode_chunks(void *argument)
{
	struct prefetch *prefetch = argument;

	pthread_mutex_lock(&prefetch->lock);
	while (!prefetch->stopping && !prefetch->ended) {
		struct slot *slot = fetch(prefetch);

		if (slot) {
			decode(prefetch, slot);
			continue;
		}
		prefetch->helper_waits = !prefetch->ended;
		while (prefetch->helper_waits && !prefetch->stopping)
			pthread_cond_wait(&prefetch->freed, &prefetch->lock);
	}
	pthread_mutex_unlock(&prefetch->lock);
	return NULL;
}

/* Frees the first slot. Wakes the helper once half of the ring is free, as waking is slow. */
static void free_first(struct prefetch *prefetch)
{
	struct xt_chunk *chunk = slot_at(prefetch, prefetch->first++)->chunk;

	prefetch->row_count -= xt_chunk_rows(chunk);
	prefetch->unused[prefetch->unused_count++] = chunk;
	if (prefetch->helper_waits && prefetch->unused_count >= CHUNKS / 2 &&
	    prefetch->row_count <= ROWS_AHEAD / 2) {
		prefetch->helper_waits = false;
		pthread_cond_signal(&prefetch->freed);
	}
}

/* Returns the slot of the next chunk, decoded, or NULL at the end of the log. */
static struct slot *next_decoded(struct prefetch *prefetch)
{
	for (;;) {
		struct slot *first = slot_at(prefetch, prefetch->first), *slot;

		if (prefetch->first < prefetch->fetched && first->is_decoded)
			return first;
		slot = fetch(prefetch);
		if (slot) {
			decode(prefetch, slot);
		} else if (prefetch->first == prefetch->fetched) {
			return NULL;
		} else {
			prefetch->user_waits = true;
			pthread_cond_wait(&prefetch->decoded, &prefetch->lock);
			prefetch->user_waits = false;
		}
	}
}

/* The helper blocks all signals: handlers run on the main thread and remove unfinished files. */
static void start_thread(struct prefetch *prefetch)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	prefetch->has_thread = !pthread_create(&prefetch->thread, NULL, decode_chunks, prefetch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds, bool has_helper)
{
	struct prefetch *prefetch = calloc(1, sizeof(*prefetch));
	size_t chunk_count = has_helper ? CHUNKS : 1;

	if (!prefetch)
		return NULL;
	prefetch->reader = reader;
	prefetch->wanted_kinds = wanted_kinds;
	pthread_mutex_init(&prefetch->lock, NULL);
	pthread_cond_init(&prefetch->decoded, NULL);
	pthread_cond_init(&prefetch->freed, NULL);
	while (prefetch->unused_count < chunk_count) {
		struct xt_chunk *chunk = xt_chunk_new();

		if (!chunk) {
			prefetch_close(prefetch);
			return NULL;
		}
		prefetch->unused[prefetch->unused_count++] = chunk;
	}
	if (has_helper)
		start_thread(prefetch);
	return prefetch;
}

const struct xt_chunk *prefetch_next(struct prefetch *prefetch)
{
	struct slot *slot;

	pthread_mutex_lock(&prefetch->lock);
	if (prefetch->has_chunk)
		free_first(prefetch);
	prefetch->has_chunk = false;
	while ((slot = next_decoded(prefetch))) {
		xt_reader_count(prefetch->reader, slot->chunk, slot->is_intact);
		prefetch->current = *slot;
		prefetch->current.skipped += prefetch->damaged_count;
		prefetch->has_chunk = slot->is_intact;
		if (slot->is_intact)
			break;
		prefetch->damaged_count++;
		free_first(prefetch);
	}
	pthread_mutex_unlock(&prefetch->lock);
	return prefetch->has_chunk ? prefetch->current.chunk : NULL;
}

uint64_t prefetch_position(const struct prefetch *prefetch)
{
	return prefetch->current.end_offset;
}

uint64_t prefetch_damaged(const struct prefetch *prefetch)
{
	return prefetch->current.skipped;
}

void prefetch_close(struct prefetch *prefetch)
{
	if (!prefetch)
		return;
	if (prefetch->has_thread) {
		pthread_mutex_lock(&prefetch->lock);
		prefetch->stopping = true;
		pthread_cond_signal(&prefetch->freed);
		pthread_mutex_unlock(&prefetch->lock);
		pthread_join(prefetch->thread, NULL);
	}
	for (; prefetch->first < prefetch->fetched; prefetch->first++)
		xt_chunk_free(slot_at(prefetch, prefetch->first)->chunk);
	for (size_t c = 0; c < prefetch->unused_count; c++)
		xt_chunk_free(prefetch->unused[c]);
	pthread_cond_destroy(&prefetch->decoded);
	pthread_cond_destroy(&prefetch->freed);
	pthread_mutex_destroy(&prefetch->lock);
	free(prefetch);
}
