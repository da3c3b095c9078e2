/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verified memo of one thread. Runs in the application's threads, at every launch: no lock,
 * no malloc, no system call; memory is the arena it was given.
 */
#include "inject/stack_memo.h"

#include <string.h>

#include "inject/hotpath.h"

static uint32_t bucket_of(const void *base)
{
	return ((uintptr_t)base >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MEMO_BUCKET_BITS);
}

static const uint16_t *entry_offsets(const struct memo_entry *entry)
{
	return (const uint16_t *)&entry->values[entry->input_count];
}

static bool inputs_are_equal(const struct memo_entry *entry, const uint64_t *base)
{
	const uint16_t *offsets = entry_offsets(entry);
	const uint64_t *values = entry->values;

	/* In order, and never past the first difference: that is what makes each read safe. */
	for (uint32_t i = 0; i < entry->input_count; i++)
		if (base[offsets[i]] != values[i])
			return false;
	return true;
}

static struct memo_entry *find_in_bucket(struct stack_memo *memo, const struct caller_regs *regs)
{
	struct memo_entry **head = &memo->buckets[bucket_of(regs)];

	for (struct memo_entry **link = head; *link; link = &(*link)->chain) {
		struct memo_entry *entry = *link;

		if (entry->base != regs || !inputs_are_equal(entry, (const uint64_t *)regs))
			continue;
		*link = entry->chain; /* to the front */
		entry->chain = *head;
		*head = entry;
		return entry;
	}
	return NULL;
}

struct memo_entry *stack_memo_find(struct stack_memo *memo, const struct caller_regs *regs,
				   uint64_t generation)
{
	struct memo_entry *last = memo->last;
	struct memo_entry *entry;

	if (memo->generation != generation) {
		stack_memo_clear(memo);
		memo->generation = generation;
		return NULL;
	}
	if (last) {
		entry = last->next_hit;
		if (entry && entry->base == regs &&
		    inputs_are_equal(entry, (const uint64_t *)regs)) {
			memo->last = entry;
			return entry;
		}
	}
	entry = find_in_bucket(memo, regs);
	if (entry) {
		if (last)
			last->next_hit = entry;
		memo->last = entry;
	}
	return entry;
}

/* Fills in the inputs; false if one lies where an offset cannot reach. */
static bool fill_inputs(struct memo_entry *entry, const struct stack_walk *walk)
{
	uint16_t *offsets = (uint16_t *)&entry->values[walk->input_count];

	for (uint32_t i = 0; i < walk->input_count; i++) {
		uintptr_t distance = walk->inputs[i].address - (uintptr_t)entry->base;

		if ((distance & 7) || distance / 8 > UINT16_MAX)
			return false;
		offsets[i] = (uint16_t)(distance / 8);
		entry->values[i] = walk->inputs[i].value;
	}
	return true;
}

struct memo_entry *stack_memo_add(struct stack_memo *memo, const struct caller_regs *regs,
				  const struct stack_walk *walk, uint64_t generation)
{
	size_t bytes = sizeof(struct memo_entry) +
		       walk->input_count * (sizeof(uint64_t) + sizeof(uint16_t));
	struct memo_entry *entry;
	uint32_t bucket = bucket_of(regs);

	if (!walk->inputs_complete)
		return NULL;
	bytes = (bytes + 63) & ~(size_t)63;
	if (memo->generation != generation || memo->slot_count + 1 == XT_STACK_SLOT_COUNT ||
	    memo->arena_used + bytes > MEMO_ARENA_BYTES) {
		stack_memo_clear(memo);
		memo->generation = generation;
	}
	entry = (struct memo_entry *)(memo->arena + memo->arena_used);
	entry->base = regs;
	entry->input_count = walk->input_count;
	if (!fill_inputs(entry, walk))
		return NULL;
	memo->arena_used += (uint32_t)bytes;
	entry->frames_hash = walk->frames_hash;
	entry->slot = ++memo->slot_count;
	entry->next_hit = NULL;
	entry->chain = memo->buckets[bucket];
	memo->buckets[bucket] = entry;
	if (memo->last)
		memo->last->next_hit = entry;
	memo->last = entry;
	return entry;
}

void stack_memo_drop(struct stack_memo *memo, struct memo_entry *entry)
{
	struct memo_entry **link = &memo->buckets[bucket_of(entry->base)];

	while (*link && *link != entry)
		link = &(*link)->chain;
	if (*link)
		*link = entry->chain;
	/* Others may still point to it as their next hit: no stack has this base. */
	entry->base = NULL;
	if (memo->last == entry)
		memo->last = NULL;
}

void stack_memo_clear(struct stack_memo *memo)
{
	memset(memo->buckets, 0, sizeof(memo->buckets));
	memo->last = NULL;
	memo->slot_count = 0;
	memo->arena_used = 0;
	memo->clears++;
}
