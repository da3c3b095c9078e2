/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of the first items of all runs. Items do not move in memory.
 */
#include "merge/read/reorder_buffer.h"

#include "base/memory.h"
#include "log/base/compare.h"

#define SPARE_RUNS 64 /* empty runs that may remain among the ends */

void reorder_buffer_init(struct reorder_buffer *buffer, size_t item_bytes, uint32_t window,
			 void (*release)(void *context, void *item, bool is_late), void *context)
{
	*buffer = (struct reorder_buffer){
		.item_bytes = item_bytes,
		.slot_bytes = (sizeof(struct reorder_slot) + item_bytes + 7) & ~(size_t)7,
		.window = window ? window : REORDER_WINDOW_MAX,
		.release = release,
		.context = context,
	};
}

void reorder_buffer_free(struct reorder_buffer *buffer)
{
	free_all(buffer->slots.rows, buffer->free_slots.rows, buffer->runs.rows,
		 buffer->free_runs.rows, buffer->ends.rows, buffer->heap.rows);
	*buffer = (struct reorder_buffer){0};
}

static struct reorder_slot *slot_at(const struct reorder_buffer *buffer, uint32_t slot)
{
	return (struct reorder_slot *)(buffer->slots.rows + slot * buffer->slot_bytes);
}

static void *item_at(const struct reorder_buffer *buffer, uint32_t slot)
{
	return slot_at(buffer, slot) + 1;
}

static bool is_before(const struct reorder_end *a, const struct reorder_end *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->sequence < b->sequence;
}

static void heap_push(struct reorder_buffer *buffer, struct reorder_end begin)
{
	struct reorder_end *heap = buffer->heap.rows;
	uint32_t i = buffer->heap.count++;

	for (; i && is_before(&begin, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = begin;
}

/* Replaces the first entry of the heap by begin. */
static void heap_replace(struct reorder_end *heap, uint32_t count, struct reorder_end begin)
{
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || !is_before(&heap[child], &begin))
			break;
		heap[i] = heap[child];
		i = child;
	}
	if (count)
		heap[i] = begin;
}

static struct reorder_end first_of_run(const struct reorder_buffer *buffer, uint32_t run)
{
	const struct reorder_slot *slot = slot_at(buffer, buffer->runs.rows[run].first);

	return (struct reorder_end){slot->time_ns, slot->sequence, run};
}

static void release_slot(struct reorder_buffer *buffer, uint32_t slot, bool is_late)
{
	buffer->release(buffer->context, item_at(buffer, slot), is_late);
	slot_at(buffer, slot)->generation++;
	buffer->free_slots.rows[buffer->free_slots.count++] = slot;
}

/*
 * The item will soon be the first of its run, and has waited so long that it has left the caches.
 */
static void prefetch_slot(const struct reorder_buffer *buffer, uint32_t slot)
{
	for (size_t b = 0; slot != REORDER_NONE && b < buffer->slot_bytes; b += 64)
		__builtin_prefetch((const char *)slot_at(buffer, slot) + b, 1);
}

static void release_first(struct reorder_buffer *buffer)
{
	struct reorder_end first = buffer->heap.rows[0];
	struct reorder_run *run = &buffer->runs.rows[first.run];
	uint32_t slot = run->first;

	run->first = slot_at(buffer, slot)->next;
	if (run->first == REORDER_NONE) {
		buffer->heap.count--;
		heap_replace(buffer->heap.rows, buffer->heap.count,
			     buffer->heap.rows[buffer->heap.count]);
	} else {
		prefetch_slot(buffer, slot_at(buffer, run->first)->next);
		heap_replace(buffer->heap.rows, buffer->heap.count,
			     first_of_run(buffer, first.run));
	}
	buffer->count--;
	buffer->released_ns = first.time_ns;
	release_slot(buffer, slot, false);
}

/* Allocates a slot. */
static uint32_t take_slot(struct reorder_buffer *buffer)
{
	uint32_t slot = buffer->slots.count;

	if (buffer->count == buffer->window)
		release_first(buffer);
	if (buffer->free_slots.count)
		return buffer->free_slots.rows[--buffer->free_slots.count];
	xt_grow_bytes(&buffer->slots.rows, &buffer->slots.capacity, slot + 1, buffer->slot_bytes);
	xt_grow(buffer->free_slots.rows, buffer->free_slots.capacity, slot + 1);
	buffer->slots.count++;
	return slot;
}

/*
 * Work may wait for its call until the end of the log, so tickets must be unique in the longest
 * log.
 */
static uint64_t make_ticket(const struct reorder_buffer *buffer, uint32_t slot)
{
	uint64_t generation = (uint64_t)slot_at(buffer, slot)->generation + 1; /* never 0 */

	return generation << REORDER_SLOT_BITS | slot;
}

/* Returns the index of the latest end that is not later than that time; end_count: none. */
static uint32_t find_end(const struct reorder_buffer *buffer, uint64_t time_ns)
{
	const struct reorder_end *ends = buffer->ends.rows;
	uint32_t last = buffer->last_end;

	if (last < buffer->ends.count && ends[last].time_ns <= time_ns &&
	    (!last || ends[last - 1].time_ns > time_ns))
		return last;
	return FIRST_NOT(i, 0, buffer->ends.count, ends[i].time_ns > time_ns);
}

static void drop_empty_runs(struct reorder_buffer *buffer)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < buffer->ends.count; i++) {
		if (buffer->runs.rows[buffer->ends.rows[i].run].first == REORDER_NONE)
			buffer->free_runs.rows[buffer->free_runs.count++] =
				buffer->ends.rows[i].run;
		else
			buffer->ends.rows[kept++] = buffer->ends.rows[i];
	}
	buffer->ends.count = kept;
}

/* Adds an empty run that is earlier than all others. */
static void add_run(struct reorder_buffer *buffer)
{
	uint32_t run;

	if (buffer->ends.count > 2 * buffer->heap.count + SPARE_RUNS)
		drop_empty_runs(buffer);
	if (buffer->free_runs.count) {
		run = buffer->free_runs.rows[--buffer->free_runs.count];
	} else {
		run = buffer->runs.count;
		xt_grow(buffer->runs.rows, buffer->runs.capacity, run + 1);
		xt_grow(buffer->free_runs.rows, buffer->free_runs.capacity, run + 1);
		xt_grow(buffer->ends.rows, buffer->ends.capacity, run + 1);
		xt_grow(buffer->heap.rows, buffer->heap.capacity, run + 1);
		buffer->runs.count++;
	}
	buffer->runs.rows[run] = (struct reorder_run){REORDER_NONE, REORDER_NONE};
	buffer->ends.rows[buffer->ends.count++].run = run;
}

static void reorder_buffer_append(struct reorder_buffer *buffer, uint32_t end, uint32_t slot)
{
	uint32_t number = buffer->ends.rows[end].run;
	struct reorder_run *run = &buffer->runs.rows[number];
	bool was_empty = run->first == REORDER_NONE;

	if (was_empty)
		run->first = slot;
	else
		slot_at(buffer, run->last)->next = slot;
	run->last = slot;
	buffer->ends.rows[end].time_ns = slot_at(buffer, slot)->time_ns;
	buffer->last_end = end;
	if (was_empty)
		heap_push(buffer, first_of_run(buffer, number));
}

void reorder_buffer_push(struct reorder_buffer *buffer, uint64_t time_ns, const void *item,
			 uint64_t *ticket_out)
{
	uint32_t slot = take_slot(buffer), end;

	memcpy(item_at(buffer, slot), item, buffer->item_bytes);
	*ticket_out = make_ticket(buffer, slot);
	if (time_ns < buffer->released_ns) {
		release_slot(buffer, slot, true);
		return;
	}
	end = find_end(buffer, time_ns);
	if (end == buffer->ends.count) {
		add_run(buffer);
		end = buffer->ends.count - 1;
	}
	slot_at(buffer, slot)->time_ns = time_ns;
	slot_at(buffer, slot)->sequence = buffer->sequence++;
	slot_at(buffer, slot)->next = REORDER_NONE;
	reorder_buffer_append(buffer, end, slot);
	buffer->count++;
}

void *reorder_buffer_item(struct reorder_buffer *buffer, uint64_t ticket)
{
	uint32_t slot = ticket & (REORDER_WINDOW_MAX - 1);

	if (!ticket || slot >= buffer->slots.count || make_ticket(buffer, slot) != ticket)
		return NULL;
	return item_at(buffer, slot);
}

uint64_t reorder_buffer_ticket(const struct reorder_buffer *buffer, const void *item)
{
	return make_ticket(buffer, (uint32_t)((size_t)((const char *)item - buffer->slots.rows) /
					      buffer->slot_bytes));
}

void reorder_buffer_finish(struct reorder_buffer *buffer)
{
	while (buffer->count)
		release_first(buffer);
}
