/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts nearly sorted items by time in bounded memory.
 *
 * A log is sorted by time within each stream or thread, and nearly sorted as a whole. Items wait in
 * a window. When it is full, the earliest item is released. An item that arrives after a later one
 * was released is passed on at once, and counted as late.
 *
 * Waiting items form runs. An item is appended to the run with the latest end that is not later
 * than the item. There are about as many runs as streams, so finding the earliest item is fast.
 */
#ifndef XT_MERGE_REORDER_BUFFER_H
#define XT_MERGE_REORDER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REORDER_SLOT_BITS  17
#define REORDER_WINDOW_MAX (1u << REORDER_SLOT_BITS)

#define REORDER_NONE UINT32_MAX

/* A waiting item follows its slot in memory. */
struct reorder_slot {
	uint64_t time_ns;
	uint64_t sequence;   /* items of equal time keep the order of their arrival */
	uint32_t next;	     /* next in the run; REORDER_NONE: last */
	uint32_t generation; /* number of uses of the slot, to validate tickets */
};

/* A list of items in order of time. */
struct reorder_run {
	uint32_t first, last; /* slots; REORDER_NONE: empty */
};

/* The first or last item of a run. */
struct reorder_end {
	uint64_t time_ns;
	uint64_t sequence; /* only for a first item */
	uint32_t run;
};

#define REORDER_LIST(type)                                                                         \
	struct {                                                                                   \
		type *rows;                                                                        \
		size_t capacity;                                                                   \
		uint32_t count;                                                                    \
	}

struct reorder_buffer {
	size_t item_bytes;
	uint32_t window; /* largest number of waiting items */
	void (*release)(void *context, void *item, bool is_late);
	void *context;
	size_t slot_bytes;
	REORDER_LIST(char) slots; /* struct reorder_slot, each with its item */
	REORDER_LIST(uint32_t) free_slots;
	REORDER_LIST(struct reorder_run) runs;
	REORDER_LIST(uint32_t) free_runs;
	/* last items of all runs, the latest first; also of runs that are now empty */
	REORDER_LIST(struct reorder_end) ends;
	REORDER_LIST(struct reorder_end)
	heap;		   /* first items of non-empty runs, the earliest first */
	uint32_t last_end; /* the run extended last */
	uint32_t count;
	uint64_t sequence;
	uint64_t released_ns; /* time of the last item released in order */
};

/* window 0: REORDER_WINDOW_MAX. Allocates nothing. release is called once for each item. */
void reorder_buffer_init(struct reorder_buffer *buffer, size_t item_bytes, uint32_t window,
			 void (*release)(void *context, void *item, bool is_late), void *context);
void reorder_buffer_free(struct reorder_buffer *buffer);

/* Adds a copy of item. *ticket_out (never 0) identifies it for reorder_buffer_item(). */
void reorder_buffer_push(struct reorder_buffer *buffer, uint64_t time_ns, const void *item,
			 uint64_t *ticket_out);

/* Returns the waiting item, which the caller may change, or NULL if it was released. */
void *reorder_buffer_item(struct reorder_buffer *buffer, uint64_t ticket);

/* Returns the ticket of an item that is waiting or being released. */
uint64_t reorder_buffer_ticket(const struct reorder_buffer *buffer, const void *item);

/* Releases all waiting items. */
void reorder_buffer_finish(struct reorder_buffer *buffer);

#endif
