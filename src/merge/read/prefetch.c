/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of chunks between the helper thread that decompresses them and the thread that uses them.
 * They share only counters. The lock is taken twice per chunk, which usually has tens of thousands
 * of rows.
 */
#include "merge/read/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Waking a thread can take as long as decompressing a chunk. Therefore the helper is woken only
 * when few decompressed chunks are left. It then decompresses several in a row.
 */
#define CHUNKS 4
#define FEW    1

struct prefetch {
	struct xt_reader *reader;
	uint32_t wanted_kinds;
	struct xt_chunk *chunks[CHUNKS];
	uint64_t ends[CHUNKS];	  /* offset of the end of each chunk in the log */
	uint64_t damaged[CHUNKS]; /* chunks before it that could not be decompressed */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Protected by the lock. */
	uint64_t read;	/* decompressed chunks */
	uint64_t freed; /* chunks of these that are no longer used */
	bool ended;	/* at the end of the log */
	bool stopping;
	/* Used only by the thread that uses the chunks. */
	uint64_t taken;
	uint64_t position;
	uint64_t damaged_count;
};

/* Decompresses the next chunk into a place of the ring. Returns false at the end of the log. */
static bool read_into(struct prefetch *prefetch, uint64_t place)
{
	bool more = xt_reader_read(prefetch->reader, prefetch->wanted_kinds,
				   prefetch->chunks[place % CHUNKS]);
	uint64_t all_bytes;

	xt_reader_position(prefetch->reader, &prefetch->ends[place % CHUNKS], &all_bytes);
	prefetch->damaged[place % CHUNKS] = xt_reader_damage(prefetch->reader)->chunks_damaged;
	return more;
}

static void *read_chunks(void *argument)
{
	struct prefetch *prefetch = argument;
	bool more = true;

	pthread_mutex_lock(&prefetch->lock);
	while (more) {
		while (prefetch->read - prefetch->freed == CHUNKS && !prefetch->stopping)
			pthread_cond_wait(&prefetch->changed, &prefetch->lock);
		if (prefetch->stopping)
			break;
		pthread_mutex_unlock(&prefetch->lock);
		more = read_into(prefetch, prefetch->read);
		pthread_mutex_lock(&prefetch->lock);
		prefetch->read += more;
		pthread_cond_signal(&prefetch->changed);
	}
	prefetch->ended = true;
	pthread_cond_signal(&prefetch->changed);
	pthread_mutex_unlock(&prefetch->lock);
	return NULL;
}

/* The helper blocks all signals: handlers run on the main thread and remove unfinished files. */
static void start_thread(struct prefetch *prefetch)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	prefetch->has_thread = !pthread_create(&prefetch->thread, NULL, read_chunks, prefetch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds, bool has_helper)
{
	struct prefetch *prefetch = calloc(1, sizeof(*prefetch));

	if (!prefetch)
		return NULL;
	prefetch->reader = reader;
	prefetch->wanted_kinds = wanted_kinds;
	pthread_mutex_init(&prefetch->lock, NULL);
	pthread_cond_init(&prefetch->changed, NULL);
	for (int c = 0; c < CHUNKS; c++) {
		prefetch->chunks[c] = xt_chunk_new();
		if (!prefetch->chunks[c]) {
			prefetch_close(prefetch);
			return NULL;
		}
	}
	if (has_helper)
		start_thread(prefetch);
	return prefetch;
}

/* Waits until the helper has decompressed the next chunk. Returns false at the end of the log. */
static bool wait_for_next(struct prefetch *prefetch)
{
	bool is_there;

	pthread_mutex_lock(&prefetch->lock);
	if (prefetch->freed != prefetch->taken) {
		prefetch->freed = prefetch->taken;
		if (prefetch->read - prefetch->freed <= FEW)
			pthread_cond_signal(&prefetch->changed);
	}
	while (prefetch->read == prefetch->taken && !prefetch->ended)
		pthread_cond_wait(&prefetch->changed, &prefetch->lock);
	is_there = prefetch->read > prefetch->taken;
	pthread_mutex_unlock(&prefetch->lock);
	return is_there;
}

const struct xt_chunk *prefetch_next(struct prefetch *prefetch)
{
	uint64_t place = prefetch->taken;

	if (!(prefetch->has_thread ? wait_for_next(prefetch) : read_into(prefetch, place)))
		return NULL;
	prefetch->taken++;
	prefetch->position = prefetch->ends[place % CHUNKS];
	prefetch->damaged_count = prefetch->damaged[place % CHUNKS];
	return prefetch->chunks[place % CHUNKS];
}

uint64_t prefetch_position(const struct prefetch *prefetch)
{
	return prefetch->position;
}

uint64_t prefetch_damaged(const struct prefetch *prefetch)
{
	return prefetch->damaged_count;
}

void prefetch_close(struct prefetch *prefetch)
{
	if (!prefetch)
		return;
	if (prefetch->has_thread) {
		pthread_mutex_lock(&prefetch->lock);
		prefetch->stopping = true;
		pthread_cond_signal(&prefetch->changed);
		pthread_mutex_unlock(&prefetch->lock);
		pthread_join(prefetch->thread, NULL);
	}
	for (int c = 0; c < CHUNKS; c++)
		xt_chunk_free(prefetch->chunks[c]);
	pthread_cond_destroy(&prefetch->changed);
	pthread_mutex_destroy(&prefetch->lock);
	free(prefetch);
}
