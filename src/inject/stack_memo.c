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

static const struct python_input *variant_inputs(const struct memo_variant *variant)
{
	return (const struct python_input *)&variant->steps[variant->step_count];
}

static const struct python_run *variant_runs(const struct memo_variant *variant)
{
	return (const struct python_run *)&variant_inputs(variant)[variant->input_count];
}

static const uint64_t *variant_copies(const struct memo_variant *variant)
{
	return (const uint64_t *)(variant_runs(variant) + variant->run_count);
}

/* Once all inputs are equal, runs are of objects that are there. */
static bool runs_are_equal(const struct memo_variant *variant)
{
	const struct python_run *runs = variant_runs(variant);
	const uint64_t *copies = variant_copies(variant);

	for (uint32_t r = 0; r < variant->run_count; r++) {
		const uint64_t *now = runs[r].words, *then = copies + runs[r].copy;
		uint64_t difference = 0;

		for (uint32_t i = 0; i < runs[r].count; i++)
			difference |= now[i] ^ then[i];
		if (difference)
			return false;
	}
	return true;
}

/* The chain first: where it leads through the same code objects, these are there to be looked at. */
static bool python_is_equal(const struct memo_variant *variant, const struct python_runtime *python,
			    uintptr_t python_state)
{
	const struct python_input *inputs = variant_inputs(variant);

	if (variant->python_state != python_state)
		return false;
	if (!python_state)
		return true;
	if (!python_steps_are_equal(&python->layout, python_state, variant->steps,
				    variant->step_count))
		return false;
	for (uint32_t i = 0; i < variant->input_count; i++)
		if ((__atomic_load_n(inputs[i].word, __ATOMIC_RELAXED) & inputs[i].mask) !=
		    inputs[i].value)
			return false;
	return runs_are_equal(variant);
}

static struct memo_entry *find_entry(struct stack_memo *memo, const struct caller_regs *regs)
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

static struct memo_variant *
find_variant(struct memo_entry *entry, const struct python_runtime *python, uintptr_t python_state)
{
	struct memo_variant **head = &entry->variants;

	for (struct memo_variant **link = head; *link; link = &(*link)->next) {
		struct memo_variant *variant = *link;

		if (!python_is_equal(variant, python, python_state))
			continue;
		*link = variant->next; /* to the front */
		variant->next = *head;
		*head = variant;
		return variant;
	}
	return NULL;
}

static void set_last(struct stack_memo *memo, struct memo_variant *variant)
{
	if (memo->last)
		memo->last->next_hit = variant;
	memo->last = variant;
}

struct memo_variant *stack_memo_find(struct stack_memo *memo, const struct caller_regs *regs,
				     const struct python_runtime *python, uintptr_t python_state,
				     uint64_t generation)
{
	struct memo_variant *variant = memo->last ? memo->last->next_hit : NULL;
	struct memo_entry *entry = variant ? variant->entry : NULL;

	if (memo->generation != generation) {
		stack_memo_clear(memo);
		memo->generation = generation;
		return NULL;
	}
	if (entry && entry->base == regs && inputs_are_equal(entry, (const uint64_t *)regs)) {
		if (python_is_equal(variant, python, python_state)) {
			memo->last = variant;
			return variant;
		}
	} else {
		entry = find_entry(memo, regs);
	}
	variant = entry ? find_variant(entry, python, python_state) : NULL;
	if (variant)
		set_last(memo, variant);
	return variant;
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

static size_t entry_bytes(const struct stack_walk *walk)
{
	size_t bytes = sizeof(struct memo_entry) +
		       walk->input_count * (sizeof(uint64_t) + sizeof(uint16_t));

	return (bytes + 63) & ~(size_t)63;
}

static size_t variant_bytes(const struct python_walk *python)
{
	size_t bytes = sizeof(struct memo_variant) +
		       python->step_count * sizeof(struct python_step) +
		       python->input_count * sizeof(struct python_input) +
		       python->run_count * sizeof(struct python_run) +
		       python->copy_count * sizeof(uint64_t);

	return (bytes + 63) & ~(size_t)63;
}

static struct memo_entry *add_entry(struct stack_memo *memo, const struct caller_regs *regs,
				    const struct stack_walk *walk)
{
	struct memo_entry *entry = (struct memo_entry *)(memo->arena + memo->arena_used);
	uint32_t bucket = bucket_of(regs);

	entry->base = regs;
	entry->variants = NULL;
	entry->input_count = walk->input_count;
	if (!fill_inputs(entry, walk))
		return NULL;
	memo->arena_used += (uint32_t)entry_bytes(walk);
	entry->chain = memo->buckets[bucket];
	memo->buckets[bucket] = entry;
	return entry;
}

struct memo_variant *stack_memo_add(struct stack_memo *memo, const struct caller_regs *regs,
				    const struct stack_walk *walk, uintptr_t python_state,
				    const struct python_walk *python, uint64_t generation)
{
	struct memo_variant *variant;
	struct memo_entry *entry;

	if (!walk->inputs_complete || !python->inputs_complete)
		return NULL;
	if (memo->generation != generation || memo->slot_count + 1 == XT_STACK_SLOT_COUNT ||
	    memo->arena_used + entry_bytes(walk) + variant_bytes(python) > MEMO_ARENA_BYTES) {
		stack_memo_clear(memo);
		memo->generation = generation;
	}
	entry = find_entry(memo, regs);
	if (!entry)
		entry = add_entry(memo, regs, walk);
	if (!entry)
		return NULL;
	variant = (struct memo_variant *)(memo->arena + memo->arena_used);
	memo->arena_used += (uint32_t)variant_bytes(python);
	*variant = (struct memo_variant){
		.entry = entry,
		.next = entry->variants,
		.frames_hash = stack_memo_hash(walk, python),
		.python_state = python_state,
		.slot = ++memo->slot_count,
		.step_count = python->step_count,
		.input_count = python->input_count,
		.run_count = python->run_count,
		.copy_count = python->copy_count,
	};
	memcpy(variant->steps, python->steps, python->step_count * sizeof(*python->steps));
	memcpy((void *)variant_inputs(variant), python->inputs,
	       python->input_count * sizeof(*python->inputs));
	memcpy((void *)variant_runs(variant), python->runs,
	       python->run_count * sizeof(*python->runs));
	memcpy((void *)variant_copies(variant), python->copies,
	       python->copy_count * sizeof(*python->copies));
	entry->variants = variant;
	set_last(memo, variant);
	return variant;
}

void stack_memo_drop(struct stack_memo *memo, struct memo_variant *variant)
{
	struct memo_entry *entry = variant->entry;
	struct memo_entry **link = &memo->buckets[bucket_of(entry->base)];

	while (*link && *link != entry)
		link = &(*link)->chain;
	if (*link)
		*link = entry->chain;
	/* Others may still point to these as their next hit. */
	for (variant = entry->variants; variant; variant = variant->next) {
		variant->entry = NULL;
		if (memo->last == variant)
			memo->last = NULL;
	}
}

void stack_memo_clear(struct stack_memo *memo)
{
	memset(memo->buckets, 0, sizeof(memo->buckets));
	memo->last = NULL;
	memo->slot_count = 0;
	memo->arena_used = 0;
	memo->clears++;
}
