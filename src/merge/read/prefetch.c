/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of chunks between the thread that unpacks and the one that uses them. Only the counts are
 * shared, under one lock that is taken twice a chunk: of tens of thousands of rows, as a rule.
 */
#include "merge/read/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Waking a thread can take as long as unpacking a chunk. So the one that unpacks is not woken for each chunk that was
 * used, but when few are left: then it unpacks several in a row, and is done before these are used.
 */
#define CHUNKS 4
#define FEW    1

struct ahead {
	struct xt_reader *reader;
	uint32_t wanted_kinds;
	struct xt_chunk *chunks[CHUNKS];
	uint64_t ends[CHUNKS];	  /* where each ends in the log */
	uint64_t damaged[CHUNKS]; /* chunks that could not be unpacked before it */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock: */
	uint64_t read;	/* chunks that were unpacked */
	uint64_t freed; /* of these, those that are not used any more */
	bool ended;	/* no more will be read */
	bool stopping;
	/* The user's: */
	uint64_t taken;
	uint64_t position;
	uint64_t damaged_count;
};

/* Unpacks the next chunk into a place of the ring; false at the end of the log. */
static bool read_into(struct ahead *ahead, uint64_t place)
{
	bool more =
		xt_reader_read(ahead->reader, ahead->wanted_kinds, ahead->chunks[place % CHUNKS]);
	uint64_t all_bytes;

	xt_reader_position(ahead->reader, &ahead->ends[place % CHUNKS], &all_bytes);
	ahead->damaged[place % CHUNKS] = xt_reader_damage(ahead->reader)->chunks_damaged;
	return more;
}

static void *read_ahead(void *argument)
{
	struct ahead *ahead = argument;
	bool more = true;

	pthread_mutex_lock(&ahead->lock);
	while (more) {
		while (ahead->read - ahead->freed == CHUNKS && !ahead->stopping)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
		if (ahead->stopping)
			break;
		pthread_mutex_unlock(&ahead->lock);
		more = read_into(ahead, ahead->read);
		pthread_mutex_lock(&ahead->lock);
		ahead->read += more;
		pthread_cond_signal(&ahead->changed);
	}
	ahead->ended = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

/* Signals are the main thread's: its handlers remove what is unfinished. */
static void start_thread(struct ahead *ahead)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	ahead->has_thread = !pthread_create(&ahead->thread, NULL, read_ahead, ahead);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct ahead *ahead_open(struct xt_reader *reader, uint32_t wanted_kinds, bool has_helper)
{
	struct ahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		return NULL;
	ahead->reader = reader;
	ahead->wanted_kinds = wanted_kinds;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	for (int c = 0; c < CHUNKS; c++) {
		ahead->chunks[c] = xt_chunk_new();
		if (!ahead->chunks[c]) {
			ahead_close(ahead);
			return NULL;
		}
	}
	if (has_helper)
		start_thread(ahead);
	return ahead;
}

/* Waits for the thread to have read the chunk that is next. False at the end of the log. */
static bool wait_for_next(struct ahead *ahead)
{
	bool is_there;

	pthread_mutex_lock(&ahead->lock);
	if (ahead->freed != ahead->taken) {
		ahead->freed = ahead->taken;
		if (ahead->read - ahead->freed <= FEW)
			pthread_cond_signal(&ahead->changed);
	}
	while (ahead->read == ahead->taken && !ahead->ended)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	is_there = ahead->read > ahead->taken;
	pthread_mutex_unlock(&ahead->lock);
	return is_there;
}

const struct xt_chunk *ahead_next(struct ahead *ahead)
{
	uint64_t place = ahead->taken;

	if (!(ahead->has_thread ? wait_for_next(ahead) : read_into(ahead, place)))
		return NULL;
	ahead->taken++;
	ahead->position = ahead->ends[place % CHUNKS];
	ahead->damaged_count = ahead->damaged[place % CHUNKS];
	return ahead->chunks[place % CHUNKS];
}

uint64_t ahead_position(const struct ahead *ahead)
{
	return ahead->position;
}

uint64_t ahead_damaged(const struct ahead *ahead)
{
	return ahead->damaged_count;
}

void ahead_close(struct ahead *ahead)
{
	if (!ahead)
		return;
	if (ahead->has_thread) {
		pthread_mutex_lock(&ahead->lock);
		ahead->stopping = true;
		pthread_cond_signal(&ahead->changed);
		pthread_mutex_unlock(&ahead->lock);
		pthread_join(ahead->thread, NULL);
	}
	for (int c = 0; c < CHUNKS; c++)
		xt_chunk_free(ahead->chunks[c]);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
