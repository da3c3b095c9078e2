/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings what is nearly sorted by time into order, in bounded memory.
 *
 * A log is sorted by time within each stream or thread, and by and large as a whole. Items wait
 * in a window until it is full; then the earliest goes on. What comes so late that something
 * later has gone on already is handed on at once, and counted.
 *
 * What waits is kept in runs: an item goes behind the latest one that is not later than itself. There are
 * about as many runs as streams, so that finding the earliest of all takes a look at few.
 */
#ifndef XT_MERGE_REORDER_BUFFER_H
#define XT_MERGE_REORDER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REORDER_SLOT_BITS  17
#define REORDER_WINDOW_MAX (1u << REORDER_SLOT_BITS)

#define REORDER_NONE UINT32_MAX

/* What waits; its item is behind it. */
struct reorder_slot {
	uint64_t time_ns;
	uint64_t sequence;   /* what is of one time goes in the order in which it came */
	uint32_t next;	     /* of the same run, later; REORDER_NONE: it is the last */
	uint32_t generation; /* how often the slot was used, to know tickets by */
};

/* Items that came in the order of their times, one behind the other, though others came between. */
struct reorder_run {
	uint32_t first, last; /* slots; REORDER_NONE: all have gone on */
};

/* What a run begins or ends with. */
struct reorder_end {
	uint64_t time_ns;
	uint64_t sequence; /* of a beginning */
	uint32_t run;
};

struct reorder_buffer {
	size_t item_bytes;
	uint32_t window; /* the most that may wait */
	void (*release)(void *context, void *item, bool is_late);
	void *context;
	char *slots; /* struct reorder_slot, each with its item */
	size_t slot_bytes;
	size_t slot_capacity;
	uint32_t *free_slots;
	size_t free_capacity;
	struct reorder_run *runs;
	size_t run_capacity;
	uint32_t *free_runs;
	size_t free_run_capacity;
	struct reorder_end
		*ends; /* of all runs, the latest first; those of empty ones as they were */
	size_t end_capacity;
	struct reorder_end *heap; /* beginnings of runs that are not empty, the earliest first */
	size_t heap_capacity;
	uint32_t slot_count;
	uint32_t free_count;
	uint32_t run_count;
	uint32_t free_run_count;
	uint32_t end_count;
	uint32_t heap_count;
	uint32_t last_end; /* which one was lengthened last */
	uint32_t count;
	uint64_t sequence;
	uint64_t released_ns; /* of the last that went on in order */
	uint64_t late_count;
};

/* window 0: REORDER_WINDOW_MAX. Nothing is allocated yet. leave is told of each item once. */
void reorder_buffer_init(struct reorder_buffer *buffer, size_t item_bytes, uint32_t window,
			 void (*release)(void *context, void *item, bool is_late), void *context);
void reorder_buffer_free(struct reorder_buffer *buffer);

/* Takes a copy of item. *ticket_out (never 0) is for reorder_buffer_item(). 0 or -ENOMEM. */
int reorder_buffer_push(struct reorder_buffer *buffer, uint64_t time_ns, const void *item,
			uint64_t *ticket_out);

/* The item, to be changed as long as it waits; NULL if it has gone on. */
void *reorder_buffer_item(struct reorder_buffer *buffer, uint64_t ticket);

/* No more will come: all that wait go on. */
void reorder_buffer_finish(struct reorder_buffer *buffer);

#endif
