/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of chunks that several threads decode: the helper threads, and the thread that uses the
 * chunks, whenever the next one is not decoded yet. So the user waits only for a chunk that a
 * helper has already begun.
 *
 * The lock protects the reader and the ring. Chunks are decoded without it. It is taken a few times
 * per chunk, which usually has tens of thousands of rows.
 *
 * With helpers, columns are packed: the caches of processors exchange them, which limits the speed.
 */
#include "merge/read/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

/* The chunks in the ring, the one in use included. The ring is full at either limit. */
#define CHUNKS		  16
#define ROWS_AHEAD	  (128u << 10) /* with one helper */
#define ROWS_AHEAD_HELPER (64u << 10)  /* for each other helper */

struct slot {
	struct xt_chunk *chunk;
	uint64_t end_offset; /* in the log */
	uint64_t skipped;    /* damaged chunks that were skipped before this one was fetched */
	bool is_decoded;
	bool is_intact; /* valid once it is decoded */
};

struct helper {
	struct prefetch *prefetch;
	struct xt_scratch *scratch;
	pthread_t thread;
};

struct prefetch {
	struct xt_reader *reader;
	uint32_t wanted_kinds, packed_kinds;
	uint64_t rows_ahead;
	struct helper helpers[PREFETCH_HELPERS_MAX];
	size_t helper_count;	    /* threads that run */
	struct xt_scratch *scratch; /* of the user; NULL without helpers */
	pthread_mutex_t lock;
	pthread_cond_t decoded; /* the user waits for it */
	pthread_cond_t freed;	/* the helpers wait for it */
	/* Protected by the lock. */
	struct slot slots[CHUNKS];
	struct xt_chunk *unused[CHUNKS]; /* a stack: the latest is most likely in the cache */
	size_t unused_count;
	uint64_t first;	  /* the oldest slot in use; slots are numbered from the first chunk on */
	uint64_t fetched; /* behind the newest */
	uint64_t row_count;
	uint64_t damaged_count; /* damaged chunks that were fetched */
	bool user_waits, helpers_wait;
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

	if (prefetch->ended || !prefetch->unused_count ||
	    prefetch->row_count >= prefetch->rows_ahead)
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

static void decode(struct prefetch *prefetch, struct slot *slot, struct xt_scratch *scratch)
{
	bool is_packed = scratch && prefetch->packed_kinds & 1u << xt_chunk_kind(slot->chunk);
	bool is_intact;

	pthread_mutex_unlock(&prefetch->lock);
	is_intact = is_packed ? xt_chunk_decode_packed(slot->chunk, scratch)
			      : xt_chunk_decode(slot->chunk);
	pthread_mutex_lock(&prefetch->lock);
	slot->is_intact = is_intact;
	slot->is_decoded = true;
	if (prefetch->user_waits)
		pthread_cond_signal(&prefetch->decoded);
}

static void *decode_chunks(void *argument)
{
	struct helper *helper = argument;
	struct prefetch *prefetch = helper->prefetch;

	pthread_mutex_lock(&prefetch->lock);
	while (!prefetch->stopping && !prefetch->ended) {
		struct slot *slot = fetch(prefetch);

		if (slot) {
			decode(prefetch, slot, helper->scratch);
			continue;
		}
		prefetch->helpers_wait = !prefetch->ended;
		while (prefetch->helpers_wait && !prefetch->stopping)
			pthread_cond_wait(&prefetch->freed, &prefetch->lock);
	}
	pthread_mutex_unlock(&prefetch->lock);
	return NULL;
}

/* Wakes helpers that wait for room, if any. */
static void wake_helpers(struct prefetch *prefetch)
{
	if (!prefetch->helpers_wait)
		return;
	prefetch->helpers_wait = false;
	pthread_cond_broadcast(&prefetch->freed);
}

/* Frees the first slot. Wakes the helpers once half of the ring is free, as waking is slow. */
static void free_first(struct prefetch *prefetch)
{
	struct xt_chunk *chunk = slot_at(prefetch, prefetch->first++)->chunk;

	prefetch->row_count -= xt_chunk_rows(chunk);
	prefetch->unused[prefetch->unused_count++] = chunk;
	if (prefetch->unused_count >= CHUNKS / 2 && prefetch->row_count <= prefetch->rows_ahead / 2)
		wake_helpers(prefetch);
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
			decode(prefetch, slot, prefetch->scratch);
		} else if (prefetch->first == prefetch->fetched) {
			return NULL;
		} else {
			prefetch->user_waits = true;
			pthread_cond_wait(&prefetch->decoded, &prefetch->lock);
			prefetch->user_waits = false;
		}
	}
}

/* Helpers block all signals: handlers run on the main thread and remove unfinished files. */
static void start_helpers(struct prefetch *prefetch, size_t count)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	while (prefetch->helper_count < count) {
		struct helper *helper = &prefetch->helpers[prefetch->helper_count];

		helper->prefetch = prefetch;
		helper->scratch = xt_scratch_new();
		if (!helper->scratch ||
		    pthread_create(&helper->thread, NULL, decode_chunks, helper))
			break;
		prefetch->helper_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds,
			       uint32_t packed_kinds, size_t helper_count)
{
	struct prefetch *prefetch = xt_calloc(1, sizeof(*prefetch));
	size_t chunk_count = helper_count ? CHUNKS : 1;

	if (helper_count > PREFETCH_HELPERS_MAX)
		helper_count = PREFETCH_HELPERS_MAX;
	prefetch->reader = reader;
	prefetch->wanted_kinds = wanted_kinds;
	prefetch->packed_kinds = packed_kinds;
	prefetch->rows_ahead = ROWS_AHEAD + helper_count * ROWS_AHEAD_HELPER - ROWS_AHEAD_HELPER;
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
	if (helper_count) {
		prefetch->scratch = xt_scratch_new();
		start_helpers(prefetch, helper_count);
	}
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
	pthread_mutex_lock(&prefetch->lock);
	prefetch->stopping = true;
	pthread_cond_broadcast(&prefetch->freed);
	pthread_mutex_unlock(&prefetch->lock);
	for (size_t h = 0; h < prefetch->helper_count; h++)
		pthread_join(prefetch->helpers[h].thread, NULL);
	for (size_t h = 0; h < PREFETCH_HELPERS_MAX; h++)
		xt_scratch_free(prefetch->helpers[h].scratch);
	xt_scratch_free(prefetch->scratch);
	for (; prefetch->first < prefetch->fetched; prefetch->first++)
		xt_chunk_free(slot_at(prefetch, prefetch->first)->chunk);
	for (size_t c = 0; c < prefetch->unused_count; c++)
		xt_chunk_free(prefetch->unused[c]);
	pthread_cond_destroy(&prefetch->decoded);
	pthread_cond_destroy(&prefetch->freed);
	pthread_mutex_destroy(&prefetch->lock);
	free(prefetch);
}
