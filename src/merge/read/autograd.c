/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/autograd.h"

#include <stdlib.h>
#include <string.h>

#include "base/tables.h"

#define ENTRIES_FIRST	  64
#define ENTRIES_MAX	  (1u << 20) /* of one thread */
#define ENTRIES_TOTAL_MAX (1u << 23)
#define THREADS_MAX	  65536
#define STATES_MAX	  (1u << 22)
#define NEIGHBOURS_MAX	  4096 /* how far to look for the nearest node with a launch */

/* The first launch after a node was created. */
struct entry {
	uint32_t sequence; /* low bits of the node's number */
	uint32_t stack;	   /* 0: no entry */
	bool is_certain;
};

struct forward_thread {
	uint64_t thread;
	uint64_t newest;       /* number of the newest node */
	struct entry *entries; /* by number modulo capacity */
	uint32_t capacity;     /* a power of two */
};

void autograd_begin_events(struct autograd *autograd)
{
	for (size_t t = 0; t < autograd->threads.count; t++)
		free(autograd->threads.list[t].entries);
	autograd->threads.count = autograd->entry_count = autograd->left_count = 0;
	xt_hash_free(&autograd->by_thread);
}

void autograd_free(struct autograd *autograd)
{
	autograd_begin_events(autograd);
	free_all(autograd->threads.list, autograd->states.list, autograd->joined.list);
	xt_hash_free(&autograd->by_key);
	*autograd = (struct autograd){0};
}

void autograd_add_state(struct autograd *autograd, uint64_t id, const struct autograd_state *state)
{
	size_t count = autograd->states.count;

	if (id >= STATES_MAX)
		return;
	list_reserve(autograd->states, id + 1);
	if (id >= count) {
		memset(autograd->states.list + count, 0, (id + 1 - count) * sizeof(*state));
		autograd->states.count = id + 1;
	}
	autograd->states.list[id] = *state;
}

/* Returns the slot of a thread, or the empty slot for it. NULL: the table is empty. */
static struct xt_hash_slot *thread_slot(const struct autograd *autograd, uint64_t thread)
{
	struct xt_hash_slot *slot;

	if (!autograd->by_thread.slot_count)
		return NULL;
	slot = xt_hash_first(&autograd->by_thread, xt_hash_u64(thread));
	while (slot->item && autograd->threads.list[slot->item - 1].thread != thread)
		slot = xt_hash_next(&autograd->by_thread, slot);
	return slot;
}

static struct forward_thread *find_thread(const struct autograd *autograd, uint64_t thread)
{
	const struct xt_hash_slot *slot = thread_slot(autograd, thread);

	return slot && slot->item ? &autograd->threads.list[slot->item - 1] : NULL;
}

/* NULL if there are too many. */
static struct forward_thread *add_thread(struct autograd *autograd, uint64_t thread)
{
	if (autograd->threads.count == THREADS_MAX)
		return NULL;
	xt_hash_require(&autograd->by_thread, autograd->threads.count + 1);
	*thread_slot(autograd, thread) =
		(struct xt_hash_slot){xt_hash_u64(thread), (uint32_t)autograd->threads.count + 1};
	list_append(autograd->threads,
		    (struct forward_thread){
			    .thread = thread,
			    .entries = xt_calloc(ENTRIES_FIRST, sizeof(struct entry)),
			    .capacity = ENTRIES_FIRST,
		    });
	autograd->entry_count += ENTRIES_FIRST;
	return &autograd->threads.list[autograd->threads.count - 1];
}

static struct entry *entry_at(const struct forward_thread *thread, uint64_t sequence)
{
	return &thread->entries[sequence & (thread->capacity - 1)];
}

/* NULL if no launch followed that node before the next one, or it is too long ago. */
static const struct entry *find_entry(const struct forward_thread *thread, uint64_t sequence)
{
	const struct entry *entry = entry_at(thread, sequence);

	return entry->stack && entry->sequence == (uint32_t)sequence ? entry : NULL;
}

/* Keeps twice as many nodes. */
static void widen(struct autograd *autograd, struct forward_thread *thread)
{
	struct forward_thread wide = *thread;

	if (thread->capacity == ENTRIES_MAX ||
	    autograd->entry_count + thread->capacity > ENTRIES_TOTAL_MAX)
		return;
	wide.capacity *= 2;
	wide.entries = xt_calloc(wide.capacity, sizeof(*wide.entries));
	for (uint32_t e = 0; e < thread->capacity; e++)
		if (thread->entries[e].stack)
			*entry_at(&wide, thread->entries[e].sequence) = thread->entries[e];
	autograd->entry_count += thread->capacity;
	free(thread->entries);
	*thread = wide;
}

/* The first launch after each node counts: later ones may not belong to its operator. */
static void note_forward(struct autograd *autograd, const struct autograd_call *call,
			 uint32_t stack)
{
	const struct autograd_state *state = autograd_state(autograd, call->state);
	struct forward_thread *thread = find_thread(autograd, state->thread);
	uint64_t sequence = call->sequence - 1;
	struct entry *entry;

	if (!thread)
		thread = add_thread(autograd, state->thread);
	if (!thread || find_entry(thread, sequence))
		return;
	if (entry_at(thread, sequence)->stack)
		widen(autograd, thread);
	entry = entry_at(thread, sequence);
	*entry = (struct entry){
		.sequence = (uint32_t)sequence, .stack = stack, .is_certain = !call->is_sampled};
	if (sequence > thread->newest)
		thread->newest = sequence;
}

static uint32_t nearest(const struct forward_thread *thread, uint64_t sequence, int step)
{
	for (uint32_t i = 0; i < NEIGHBOURS_MAX; i++) {
		const struct entry *entry;

		if (step < 0 ? !sequence : sequence >= thread->newest)
			return 0;
		sequence += (uint64_t)step;
		entry = find_entry(thread, sequence);
		if (entry)
			return entry->stack;
	}
	return 0;
}

static uint8_t depth_of(const struct autograd *autograd, uint32_t stack)
{
	return autograd_is_joined(autograd, stack)
		       ? autograd->joined.list[stack - autograd->first_joined].depth
		       : 0;
}

static uint8_t max_depth(const struct autograd *autograd, const struct joined_stack *key)
{
	uint8_t at = depth_of(autograd, key->at), before = depth_of(autograd, key->before);
	uint8_t after = depth_of(autograd, key->after);

	before = before > after ? before : after;
	return at > before ? at : before;
}

/* Returns the id of a joined stack; its `own` if there are too many. */
static uint32_t joined_id(struct autograd *autograd, const struct joined_stack *key)
{
	uint32_t hash = xt_hash_bytes(key, sizeof(*key));
	struct xt_hash_slot *slot;

	xt_hash_require(&autograd->by_key, autograd->joined.count + 1);
	for (slot = xt_hash_first(&autograd->by_key, hash); slot->item;
	     slot = xt_hash_next(&autograd->by_key, slot))
		if (!memcmp(&autograd->joined.list[slot->item - 1], key, sizeof(*key)))
			return autograd->first_joined + slot->item - 1;
	if (autograd->joined.count == JOINED_STACKS_MAX)
		return key->own;
	memcpy(list_new(autograd->joined), key, sizeof(*key));
	*slot = (struct xt_hash_slot){hash, (uint32_t)autograd->joined.count};
	return autograd->first_joined + (uint32_t)autograd->joined.count - 1;
}

void autograd_join(struct autograd *autograd, const struct autograd_call *call, uint32_t *stack_out)
{
	const struct autograd_state *state = autograd_state(autograd, call->state);
	const struct forward_thread *thread =
		state->node_thread ? find_thread(autograd, state->node_thread) : NULL;
	uint64_t sequence = call->node_sequence - 1;
	struct joined_stack key;
	const struct entry *at;

	*stack_out = call->stack;
	/* An id that a joined stack may get is not one of the log. */
	if (!call->state || !call->stack || call->stack >= autograd->first_joined)
		return;
	if (state->node_type) {
		memset(&key, 0, sizeof(key)); /* padding is compared, too */
		key.own = call->stack;
		key.state = call->state;
		at = thread && call->node_sequence ? find_entry(thread, sequence) : NULL;
		if (at) {
			key.at = at->stack;
			key.is_certain = at->is_certain;
		}
		if (thread && call->node_sequence) {
			key.before = nearest(thread, sequence, -1);
			key.after = at ? 0 : nearest(thread, sequence, 1);
		}
		key.depth = 1 + max_depth(autograd, &key);
		if (key.depth <= JOIN_DEPTH_MAX)
			*stack_out = joined_id(autograd, &key);
		autograd->left_count += *stack_out == call->stack;
	}
	if (call->sequence)
		note_forward(autograd, call, *stack_out);
}
