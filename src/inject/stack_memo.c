/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verified memo of one thread. Runs in the application's threads, at every launch: no lock,
 * no malloc, no system call; memory is the arena it was given.
 */
#include "inject/stack_memo.h"

#include <string.h>

#include "inject/budget.h"
#include "inject/hotpath.h"

#define CACHE_LINE_BYTES 64
#define FETCH_BYTES_MAX	 2048 /* more is not asked for ahead: others need the cache too */
#define NODE_BYTES	 CACHE_LINE_BYTES
#define NODE_TABLE_BYTES ((1u << MEMO_NODE_BITS) * sizeof(struct memo_node *))
_Static_assert(sizeof(struct memo_node) <= NODE_BYTES, "a node takes one line of the cache");

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
#pragma GCC unroll 8
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
			    const struct python_thread *thread)
{
	const struct python_input *inputs = variant_inputs(variant);

	if (variant->thread.state != thread->state)
		return false;
	if (!thread->state)
		return true;
	if (variant->thread.interpreter != thread->interpreter ||
	    !python_steps_are_equal(python, thread, variant->steps, variant->step_count) ||
	    python_is_finalizing(python, thread->state))
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

static struct memo_node **node_bucket(struct stack_memo *memo, const struct memo_entry *entry,
				      uint64_t key)
{
	uint64_t hash = (key ^ (uintptr_t)entry) * UINT64_C(0x9e3779b97f4a7c15);

	return &memo->nodes[hash >> (64 - MEMO_NODE_BITS)];
}

static struct memo_node *find_node(struct stack_memo *memo, const struct memo_entry *entry,
				   uint64_t key)
{
	struct memo_node *node = *node_bucket(memo, entry, key);

	while (node && (node->key != key || node->entry != entry))
		node = node->chain;
	return node;
}

/* The node that the thread's frames lead to, not divided; NULL if there is none. */
static struct memo_node *find_leaf(struct stack_memo *memo, struct memo_entry *entry,
				   const struct python_runtime *python,
				   const struct python_thread *thread)
{
	const struct python_layout *layout = &python->layout;
	struct memo_node *node = &entry->root;
	uintptr_t cframe, frame;

	if (!node->is_divided)
		return node;
	frame = python_first_frame(layout, thread, &cframe);
	for (;;) {
		node = find_node(memo, entry, python_frame_key(layout, node->key, frame));
		if (!node || !node->is_divided)
			return node;
		/* A node behind the last frame is not divided. */
		frame = python_load(frame + layout->frame_previous, 8);
		if (python_is_finalizing(python, thread->state))
			return NULL;
	}
}

static struct memo_variant *find_variant(struct stack_memo *memo, struct memo_entry *entry,
					 const struct python_runtime *python,
					 const struct python_thread *thread)
{
	struct memo_variant **head;
	struct memo_node *node;

	if (!thread->state)
		return entry->native;
	node = find_leaf(memo, entry, python, thread);
	if (!node)
		return NULL;
	head = &node->variants;
	for (struct memo_variant **link = head; *link; link = &(*link)->next) {
		struct memo_variant *variant = *link;

		if (!python_is_equal(variant, python, thread))
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

/* Whose Python frames are to be compared, if any: nothing is read of a state before its native stack says that
 * the thread may be in it. */
static inline const struct python_thread *enter_python(const struct memo_entry *entry,
						       const struct python_runtime *python,
						       struct python_thread *thread)
{
	static const struct python_thread nowhere;

	if (!thread->state || !entry->python_stack_bytes ||
	    !python_enter(python, entry->base, entry->python_stack_bytes, thread))
		return &nowhere;
	return thread;
}

struct memo_variant *stack_memo_find(struct stack_memo *memo, const struct caller_regs *regs,
				     const struct python_runtime *python,
				     struct python_thread *thread, uint64_t generation)
{
	const struct python_thread *entered;
	struct memo_variant *variant = memo->last ? memo->last->next_hit : NULL;
	struct memo_entry *entry = variant ? variant->entry : NULL;

	if (memo->generation != generation) {
		stack_memo_clear(memo);
		memo->generation = generation;
		return NULL;
	}
	if (entry && entry->base == regs && inputs_are_equal(entry, (const uint64_t *)regs)) {
		entered = enter_python(entry, python, thread);
		if (python_is_equal(variant, python, entered)) {
			memo->last = variant;
			return variant;
		}
	} else {
		entry = find_entry(memo, regs);
		if (!entry)
			return NULL;
		entered = enter_python(entry, python, thread);
	}
	variant = find_variant(memo, entry, python, entered);
	if (variant)
		set_last(memo, variant);
	return variant;
}

static void fetch(const void *from, size_t bytes)
{
	if (bytes > FETCH_BYTES_MAX)
		bytes = FETCH_BYTES_MAX;
	for (size_t i = 0; i < bytes; i += CACHE_LINE_BYTES)
		__builtin_prefetch((const char *)from + i);
}

void stack_memo_fetch_expected(const struct stack_memo *memo)
{
	const struct memo_variant *next = memo->last ? memo->last->next_hit : NULL;

	if (!next)
		return;
	fetch(next->entry, next->entry_bytes);
	fetch(next->steps, next->step_count * sizeof(struct python_step) +
				   next->input_count * sizeof(struct python_input));
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
				    const struct stack_walk *walk, uint32_t python_stack_bytes)
{
	struct memo_entry *entry = (struct memo_entry *)(memo->arena + memo->arena_used);
	uint32_t bucket = bucket_of(regs);

	entry->base = regs;
	entry->native = NULL;
	entry->root = (struct memo_node){.entry = entry};
	entry->input_count = walk->input_count;
	entry->python_stack_bytes = python_stack_bytes;
	if (!fill_inputs(entry, walk))
		return NULL;
	memo->arena_used += (uint32_t)entry_bytes(walk);
	entry->chain = memo->buckets[bucket];
	memo->buckets[bucket] = entry;
	return entry;
}

/* Whoever takes of the arena has seen that there is as much. */
static void *take(struct stack_memo *memo, size_t bytes)
{
	void *taken = memo->arena + memo->arena_used;

	memo->arena_used += (uint32_t)bytes;
	return taken;
}

/* The node that the variant belongs to, of those with a frame more than that one. */
static struct memo_node *child_of(struct stack_memo *memo, const struct memo_node *parent,
				  const struct memo_variant *variant)
{
	const struct python_step *step = &variant->steps[parent->frame_count];
	bool has_step = parent->frame_count < variant->step_count;
	uint64_t key = has_step ? python_path_key(parent->key, step->code, step->instruction)
				: python_path_key(parent->key, 0, 1);
	struct memo_node *node = find_node(memo, parent->entry, key), **bucket;

	if (node)
		return node;
	bucket = node_bucket(memo, parent->entry, key);
	node = take(memo, NODE_BYTES);
	*node = (struct memo_node){.entry = parent->entry,
				   .chain = *bucket,
				   .key = key,
				   .frame_count = parent->frame_count + 1};
	*bucket = node;
	return node;
}

static void hang_up(struct memo_node *node, struct memo_variant *variant)
{
	variant->next = node->variants;
	node->variants = variant;
	node->variant_count++;
}

/* As much of the arena is there, or is given by the budget. */
static bool have_room(struct stack_memo *memo, size_t bytes)
{
	while (MEMO_ARENA_BYTES - memo->arena_used >= bytes) {
		if (memo->arena_bytes - memo->arena_used >= bytes)
			return true;
		if (!budget_take(MEMO_STEP_BYTES))
			return false;
		memo->arena_bytes += MEMO_STEP_BYTES;
	}
	return false;
}

/* Variants whose frames are all the same differ in what their code is, and stay together. */
static bool can_divide(struct stack_memo *memo, const struct memo_node *node)
{
	if (!have_room(memo, NODE_TABLE_BYTES + node->variant_count * NODE_BYTES))
		return false;
	for (const struct memo_variant *v = node->variants; v; v = v->next)
		if (v->step_count < node->frame_count)
			return false;
	return true;
}

static void divide(struct stack_memo *memo, struct memo_node *node)
{
	struct memo_variant *variant = node->variants, *next;

	if (!memo->nodes) {
		memo->nodes = take(memo, NODE_TABLE_BYTES);
		memset(memo->nodes, 0, NODE_TABLE_BYTES);
	}
	node->is_divided = true;
	node->variants = NULL;
	for (; variant; variant = next) {
		next = variant->next;
		hang_up(child_of(memo, node, variant), variant);
	}
}

static void place_variant(struct stack_memo *memo, struct memo_variant *variant)
{
	struct memo_node *node = &variant->entry->root;

	if (!variant->thread.state) {
		variant->entry->native = variant;
		return;
	}
	while (node->is_divided)
		node = child_of(memo, node, variant);
	hang_up(node, variant);
	if (node->variant_count >= MEMO_NODE_MANY && can_divide(memo, node))
		divide(memo, node);
}

struct memo_variant *stack_memo_add(struct stack_memo *memo, const struct caller_regs *regs,
				    const struct stack_walk *walk, const struct python_walk *python,
				    uint64_t generation)
{
	size_t bytes = entry_bytes(walk) + variant_bytes(python) + NODE_BYTES;
	struct memo_variant *variant;
	struct memo_entry *entry;

	if (!walk->inputs_complete || !python->inputs_complete)
		return NULL;
	if (memo->generation != generation || memo->slot_count + 1 == XT_STACK_SLOT_COUNT ||
	    !have_room(memo, bytes)) {
		stack_memo_clear(memo);
		memo->generation = generation;
	}
	if (!have_room(memo, bytes))
		return NULL;
	entry = find_entry(memo, regs);
	if (!entry)
		entry = add_entry(memo, regs, walk, python->stack_bytes);
	if (!entry)
		return NULL;
	variant = take(memo, variant_bytes(python));
	*variant = (struct memo_variant){
		.entry = entry,
		.frames_hash = stack_memo_hash(walk, python),
		.thread = python->thread,
		.slot = ++memo->slot_count,
		.entry_bytes = (uint32_t)entry_bytes(walk),
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
	place_variant(memo, variant);
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
	/* Others may still point to its variants as their next hit. */
	entry->base = NULL;
}

void stack_memo_clear(struct stack_memo *memo)
{
	memset(memo->buckets, 0, sizeof(memo->buckets));
	memo->nodes = NULL;
	memo->last = NULL;
	memo->slot_count = 0;
	memo->arena_used = 0;
	memo->clears++;
}

void stack_memo_begin(struct stack_memo *memo)
{
	if (memo->arena_bytes > MEMO_OWN_BYTES)
		budget_give_back(memo->arena_bytes - MEMO_OWN_BYTES);
	memo->arena_bytes = MEMO_OWN_BYTES;
	stack_memo_clear(memo);
}
