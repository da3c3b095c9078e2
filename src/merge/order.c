/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of times over items that stay where they are.
 */
#include "merge/order.h"

#include "merge/grow.h"

#define GENERATION_MASK ((1u << (32 - ORDER_SLOT_BITS)) - 1)

void order_init(struct order *order, size_t item_bytes, uint32_t window,
		void (*leave)(void *context, void *item, bool is_late), void *context)
{
	*order = (struct order){
		.item_bytes = item_bytes,
		.window = window ? window : ORDER_WINDOW_MAX,
		.leave = leave,
		.context = context,
	};
}

void order_free(struct order *order)
{
	free(order->items);
	free(order->generations);
	free(order->free_slots);
	free(order->heap);
	*order = (struct order){0};
}

static bool is_before(const struct order_entry *a, const struct order_entry *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->sequence < b->sequence;
}

static void sift_up(struct order_entry *heap, uint32_t i)
{
	struct order_entry entry = heap[i];

	for (; i && is_before(&entry, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = entry;
}

/* Puts entry where the first was. */
static void sift_down(struct order_entry *heap, uint32_t count, struct order_entry entry)
{
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || !is_before(&heap[child], &entry))
			break;
		heap[i] = heap[child];
		i = child;
	}
	if (count)
		heap[i] = entry;
}

static void let_first_go(struct order *order)
{
	struct order_entry first = order->heap[0];

	order->count--;
	sift_down(order->heap, order->count, order->heap[order->count]);
	order->left_ns = first.time_ns;
	order->leave(order->context, order->items + first.slot * order->item_bytes, false);
	order->generations[first.slot]++;
	order->free_slots[order->free_count++] = first.slot;
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
	if (grow(&order->items, &order->item_capacity, *slot_out + 1, order->item_bytes) < 0 ||
	    grow(&order->generations, &order->generation_capacity, *slot_out + 1,
		 sizeof(*order->generations)) < 0 ||
	    grow(&order->free_slots, &order->free_capacity, *slot_out + 1,
		 sizeof(*order->free_slots)) < 0 ||
	    grow(&order->heap, &order->heap_capacity, *slot_out + 1, sizeof(*order->heap)) < 0)
		return -ENOMEM;
	order->slot_count++;
	return 0;
}

static uint32_t make_ticket(const struct order *order, uint32_t slot)
{
	uint32_t generation = order->generations[slot] % GENERATION_MASK + 1; /* never 0 */

	return generation << ORDER_SLOT_BITS | slot;
}

int order_push(struct order *order, uint64_t time_ns, const void *item, uint32_t *ticket_out)
{
	uint32_t slot;
	int error = take_slot(order, &slot);

	if (error)
		return error;
	memcpy(order->items + slot * order->item_bytes, item, order->item_bytes);
	*ticket_out = make_ticket(order, slot);
	if (time_ns < order->left_ns) {
		order->late_count++;
		order->leave(order->context, order->items + slot * order->item_bytes, true);
		order->generations[slot]++;
		order->free_slots[order->free_count++] = slot;
		return 0;
	}
	order->heap[order->count] = (struct order_entry){time_ns, order->sequence++, slot};
	sift_up(order->heap, order->count++);
	return 0;
}

void *order_item(struct order *order, uint32_t ticket)
{
	uint32_t slot = ticket & (ORDER_WINDOW_MAX - 1);

	if (!ticket || slot >= order->slot_count || make_ticket(order, slot) != ticket)
		return NULL;
	return order->items + slot * order->item_bytes;
}

void order_finish(struct order *order)
{
	while (order->count)
		let_first_go(order);
}
