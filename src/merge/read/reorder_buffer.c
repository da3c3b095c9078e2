/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of the beginnings of runs, over items that stay where they are.
 */
#include "merge/read/reorder_buffer.h"

#include "merge/base/grow.h"

#define SPARE_RUNS 64 /* empty ones that may stand among the ends */

void order_init(struct order *order, size_t item_bytes, uint32_t window,
		void (*leave)(void *context, void *item, bool is_late), void *context)
{
	*order = (struct order){
		.item_bytes = item_bytes,
		.slot_bytes = (sizeof(struct order_slot) + item_bytes + 7) & ~(size_t)7,
		.window = window ? window : ORDER_WINDOW_MAX,
		.leave = leave,
		.context = context,
	};
}

void order_free(struct order *order)
{
	free(order->slots);
	free(order->free_slots);
	free(order->runs);
	free(order->free_runs);
	free(order->ends);
	free(order->heap);
	*order = (struct order){0};
}

static struct order_slot *slot_at(const struct order *order, uint32_t slot)
{
	return (struct order_slot *)(order->slots + slot * order->slot_bytes);
}

static void *item_at(const struct order *order, uint32_t slot)
{
	return slot_at(order, slot) + 1;
}

static bool is_before(const struct order_end *a, const struct order_end *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->sequence < b->sequence;
}

static void heap_push(struct order *order, struct order_end begin)
{
	struct order_end *heap = order->heap;
	uint32_t i = order->heap_count++;

	for (; i && is_before(&begin, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = begin;
}

/* Puts begin where the first was. */
static void heap_replace(struct order_end *heap, uint32_t count, struct order_end begin)
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

static struct order_end beginning(const struct order *order, uint32_t run)
{
	const struct order_slot *slot = slot_at(order, order->runs[run].first);

	return (struct order_end){slot->time_ns, slot->sequence, run};
}

static void let_go(struct order *order, uint32_t slot, bool is_late)
{
	order->leave(order->context, item_at(order, slot), is_late);
	slot_at(order, slot)->generation++;
	order->free_slots[order->free_count++] = slot;
}

/* It has waited for long and has left the caches; soon it is the first of its run. */
static void fetch(const struct order *order, uint32_t slot)
{
	for (size_t b = 0; slot != ORDER_NONE && b < order->slot_bytes; b += 64)
		__builtin_prefetch((const char *)slot_at(order, slot) + b, 1);
}

static void let_first_go(struct order *order)
{
	struct order_end first = order->heap[0];
	struct order_run *run = &order->runs[first.run];
	uint32_t slot = run->first;

	run->first = slot_at(order, slot)->next;
	if (run->first == ORDER_NONE) {
		order->heap_count--;
		heap_replace(order->heap, order->heap_count, order->heap[order->heap_count]);
	} else {
		fetch(order, slot_at(order, run->first)->next);
		heap_replace(order->heap, order->heap_count, beginning(order, first.run));
	}
	order->count--;
	order->left_ns = first.time_ns;
	let_go(order, slot, false);
}

/* A place for one more item. 0 or -ENOMEM. */
static int take_slot(struct order *order, uint32_t *slot_out)
{
	if (order->count == order->window)
		let_first_go(order);
	if (order->free_count) {
		*slot_out = order->free_slots[--order->free_count];
		return 0;
	}
	*slot_out = order->slot_count;
	if (grow(&order->slots, &order->slot_capacity, *slot_out + 1, order->slot_bytes) < 0 ||
	    grow(&order->free_slots, &order->free_capacity, *slot_out + 1,
		 sizeof(*order->free_slots)) < 0)
		return -ENOMEM;
	order->slot_count++;
	return 0;
}

/* Work can wait for its call throughout the log, so tickets must not recur in the longest log. */
static uint64_t make_ticket(const struct order *order, uint32_t slot)
{
	uint64_t generation = (uint64_t)slot_at(order, slot)->generation + 1; /* never 0 */

	return generation << ORDER_SLOT_BITS | slot;
}

/* The place among the ends of the latest that is not later than that time; end_count: there is none. */
static uint32_t find_end(const struct order *order, uint64_t time_ns)
{
	const struct order_end *ends = order->ends;
	uint32_t low = 0, high = order->end_count, last = order->last_end;

	if (last < high && ends[last].time_ns <= time_ns &&
	    (!last || ends[last - 1].time_ns > time_ns))
		return last;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ends[middle].time_ns <= time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void drop_empty_runs(struct order *order)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < order->end_count; i++) {
		if (order->runs[order->ends[i].run].first == ORDER_NONE)
			order->free_runs[order->free_run_count++] = order->ends[i].run;
		else
			order->ends[kept++] = order->ends[i];
	}
	order->end_count = kept;
}

/* A run that is earlier than all others, and empty. 0 or -ENOMEM. */
static int add_run(struct order *order)
{
	uint32_t run;

	if (order->end_count > 2 * order->heap_count + SPARE_RUNS)
		drop_empty_runs(order);
	if (order->free_run_count) {
		run = order->free_runs[--order->free_run_count];
	} else {
		run = order->run_count;
		if (grow(&order->runs, &order->run_capacity, run + 1, sizeof(*order->runs)) < 0 ||
		    grow(&order->free_runs, &order->free_run_capacity, run + 1,
			 sizeof(*order->free_runs)) < 0 ||
		    grow(&order->ends, &order->end_capacity, run + 1, sizeof(*order->ends)) < 0 ||
		    grow(&order->heap, &order->heap_capacity, run + 1, sizeof(*order->heap)) < 0)
			return -ENOMEM;
		order->run_count++;
	}
	order->runs[run] = (struct order_run){ORDER_NONE, ORDER_NONE};
	order->ends[order->end_count++].run = run;
	return 0;
}

static void append(struct order *order, uint32_t end, uint32_t slot)
{
	uint32_t number = order->ends[end].run;
	struct order_run *run = &order->runs[number];
	bool was_empty = run->first == ORDER_NONE;

	if (was_empty)
		run->first = slot;
	else
		slot_at(order, run->last)->next = slot;
	run->last = slot;
	order->ends[end].time_ns = slot_at(order, slot)->time_ns;
	order->last_end = end;
	if (was_empty)
		heap_push(order, beginning(order, number));
}

int order_push(struct order *order, uint64_t time_ns, const void *item, uint64_t *ticket_out)
{
	uint32_t slot, end;
	int error = take_slot(order, &slot);

	if (error)
		return error;
	memcpy(item_at(order, slot), item, order->item_bytes);
	*ticket_out = make_ticket(order, slot);
	if (time_ns < order->left_ns) {
		order->late_count++;
		let_go(order, slot, true);
		return 0;
	}
	end = find_end(order, time_ns);
	if (end == order->end_count) {
		error = add_run(order);
		if (error) {
			order->free_slots[order->free_count++] = slot;
			return error;
		}
		end = order->end_count - 1;
	}
	slot_at(order, slot)->time_ns = time_ns;
	slot_at(order, slot)->sequence = order->sequence++;
	slot_at(order, slot)->next = ORDER_NONE;
	append(order, end, slot);
	order->count++;
	return 0;
}

void *order_item(struct order *order, uint64_t ticket)
{
	uint32_t slot = ticket & (ORDER_WINDOW_MAX - 1);

	if (!ticket || slot >= order->slot_count || make_ticket(order, slot) != ticket)
		return NULL;
	return item_at(order, slot);
}

void order_finish(struct order *order)
{
	while (order->count)
		let_first_go(order);
}
