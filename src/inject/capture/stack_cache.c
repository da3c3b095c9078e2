/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack cache of one thread. Runs at every launch in the program's threads: no lock, no malloc,
 * no system call. All memory is in the arena.
 */
#include "inject/capture/stack_cache.h"

#include <string.h>

#include "inject/memory/budget.h"
#include "inject/python/python_modules.h"
#include "inject/capture/stack_cache_evict.h"
#include "inject/capture/stack_cache_index.h"
#include "inject/runtime/hotpath.h"

#define FETCH_BYTES_MAX 2048 /* prefetching more would evict the program's data */
#define INPUTS_AT_ONCE	8    /* an entry has a multiple of this many inputs; the last one repeats */

static uint16_t *entry_offsets(const struct cache_entry *entry)
{
	return (uint16_t *)&entry->values[entry->object.input_count];
}

static inline __attribute__((always_inline)) bool inputs_are_equal(const struct cache_entry *entry,
								   const uint64_t *base)
{
	const uint16_t *o = entry_offsets(entry);
	const uint64_t *v = entry->values;
	const uint32_t count = entry->object.input_count;

	/* Compare in order and stop at the first difference: that makes each read safe. */
	for (size_t i = 0; i < count; i += INPUTS_AT_ONCE)
		if (base[o[i]] != v[i] || base[o[i + 1]] != v[i + 1] ||
		    base[o[i + 2]] != v[i + 2] || base[o[i + 3]] != v[i + 3] ||
		    base[o[i + 4]] != v[i + 4] || base[o[i + 5]] != v[i + 5] ||
		    base[o[i + 6]] != v[i + 6] || base[o[i + 7]] != v[i + 7])
			return false;
	return true;
}

uint64_t stack_cache_variant_hash(const struct cache_variant *variant)
{
	return *variant_hash(variant);
}

static const struct python_input *variant_inputs(const struct cache_variant *variant)
{
	return (const struct python_input *)(variant_hash(variant) + 1);
}

static const struct python_run *variant_runs(const struct cache_variant *variant)
{
	return (const struct python_run *)&variant_inputs(variant)[variant->object.input_count];
}

static const uint64_t *variant_copies(const struct cache_variant *variant)
{
	return (const uint64_t *)(variant_runs(variant) + variant->run_count);
}

/* If all inputs are equal, the objects of these runs are readable. */
static bool runs_are_equal(const struct cache_variant *variant)
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

static __attribute__((noinline)) bool
inputs_of_python_are_equal(const struct cache_variant *variant)
{
	const struct python_input *inputs = variant_inputs(variant);
	const struct python_called *called = variant_modules(variant);

	if (called && !python_modules_are_equal(&python_now()->layout, variant->first_frame,
						variant->steps, called))
		return false;
	for (uint32_t i = called ? called->left : 0; i < variant->object.input_count; i++)
		if ((__atomic_load_n(inputs[i].word, __ATOMIC_RELAXED) & inputs[i].mask) !=
		    inputs[i].value)
			return false;
	return runs_are_equal(variant);
}

/* Compares the chain first: if it has the same code objects, they are readable. */
static LIKELY __attribute__((noinline)) bool frames_are_equal(struct cache_variant *variant,
							      const struct python_runtime *python,
							      const struct python_thread *thread)
{
	if (!python_steps_are_equal(python, thread, &variant->first_frame, variant->steps,
				    variant->step_count) ||
	    python_is_finalizing(python, thread->state))
		return false;
	return python_versions_are_equal(&python->layout, variant->steps, variant->step_count) &&
	       (!variant->object.input_count || inputs_of_python_are_equal(variant));
}

static inline bool python_is_equal(struct cache_variant *variant,
				   const struct python_runtime *python,
				   const struct python_thread *thread)
{
	if (variant->state != thread->state)
		return false;
	if (!thread->state)
		return true;
	return variant->interpreter == thread->interpreter &&
	       frames_are_equal(variant, python, thread);
}

static __attribute__((noinline)) struct cache_entry *find_entry(struct stack_cache *cache,
								const struct caller_regs *regs)
{
	struct cache_entry **head = &cache->buckets[bucket_of(regs)];

	for (struct cache_entry **link = head; *link; link = &(*link)->chain) {
		struct cache_entry *entry = *link;

		if (entry->base != regs || !inputs_are_equal(entry, (const uint64_t *)regs))
			continue;
		*link = entry->chain; /* move to front */
		entry->chain = *head;
		*head = entry;
		return entry;
	}
	return NULL;
}

/* Adds the module to the key of a frame that calls one. */
static uint64_t add_module(const struct python_layout *layout, uint64_t key, uintptr_t frame)
{
	if (!frame || python_is_shim(layout, frame) ||
	    !python_modules_are_called_by(python_load(frame + layout->frame_code, 8)))
		return key;
	return python_module_key(key, python_first_local(layout, frame));
}

/* The leaf node for the thread's current frames, or NULL. */
static inline __attribute__((always_inline)) struct cache_node *
descend(struct stack_cache *cache, struct cache_entry *entry, const struct python_runtime *python,
	const struct python_thread *thread, bool has_modules)
{
	const struct python_layout *layout = &python->layout;
	struct cache_node *node = entry_root(entry);
	uintptr_t frame = thread->innermost;
	uint64_t key;

	for (;;) {
		key = python_frame_key(layout, node->key, frame);
		if (has_modules)
			key = add_module(layout, key, frame);
		node = find_node(cache, entry, key);
		if (!node || !node->is_split)
			return node;
		/* A node for the whole chain is never split. */
		frame = python_load(frame + layout->frame_previous, 8);
		if (python_is_finalizing(python, thread->state))
			return NULL;
	}
}

static struct cache_node *find_leaf(struct stack_cache *cache, struct cache_entry *entry,
				    const struct python_runtime *python,
				    const struct python_thread *thread)
{
	if (!entry_root(entry)->is_split)
		return entry_root(entry);
	return python_modules_wanted ? descend(cache, entry, python, thread, true)
				     : descend(cache, entry, python, thread, false);
}

static struct cache_variant *find_variant(struct stack_cache *cache, struct cache_entry *entry,
					  const struct python_runtime *python,
					  const struct python_thread *thread)
{
	struct cache_variant **head;
	struct cache_node *node;

	if (!thread->state)
		return entry->native;
	node = find_leaf(cache, entry, python, thread);
	if (!node)
		return NULL;
	head = &node->variants;
	for (struct cache_variant **link = head; *link; link = &(*link)->next) {
		struct cache_variant *variant = *link;

		if (!python_is_equal(variant, python, thread))
			continue;
		*link = variant->next; /* move to front */
		variant->next = *head;
		*head = variant;
		return variant;
	}
	return NULL;
}

/* Makes the variant the successor of the last hit, and expects the successor it had before. */
static void link_to_last(struct stack_cache *cache, struct cache_variant *variant)
{
	if (cache->last && cache->expected != variant)
		cache->last->next_hit = variant;
	cache->last = variant;
	cache->expected = variant->next_hit;
}

static LIKELY __attribute__((noinline)) bool can_enter_python(const struct cache_entry *entry,
							      const struct python_runtime *python,
							      struct python_thread *thread)
{
	return python_enter(python, entry->base, entry->python_stack_bytes, thread);
}

/*
 * Enters the Python state whose frames are compared next, or returns NULL. No state is read before
 * the native stack shows that the thread may run in it.
 */
static inline const struct python_thread *enter_python(const struct cache_entry *entry,
						       const struct python_runtime *python,
						       struct python_thread *thread)
{
	static const struct python_thread nowhere;

	if (!thread->state || !entry->python_stack_bytes ||
	    !can_enter_python(entry, python, thread))
		return &nowhere;
	return thread;
}

/* Finds another variant of the same native stack than the expected one, or NULL. */
static __attribute__((noinline)) struct cache_variant *
find_other(struct stack_cache *cache, struct cache_entry *entry,
	   const struct python_runtime *python, const struct python_thread *entered)
{
	struct cache_variant *variant = find_variant(cache, entry, python, entered);

	if (!variant)
		return NULL;
	variant->object.is_used = true;
	link_to_last(cache, variant);
	return variant;
}

/* Searches for another native stack than the expected one. */
static COLD struct cache_variant *find_other_stack(struct stack_cache *cache,
						   const struct caller_regs *regs,
						   const struct python_runtime *python,
						   struct python_thread *thread)
{
	struct cache_entry *entry = find_entry(cache, regs);

	if (!entry)
		return NULL;
	return find_other(cache, entry, python, enter_python(entry, python, thread));
}

static COLD void begin_generation(struct stack_cache *cache, uint64_t generation)
{
	stack_cache_clear(cache);
	cache->generation = generation;
}

LIKELY struct cache_variant *stack_cache_find(struct stack_cache *cache,
					      const struct caller_regs *regs,
					      const struct python_runtime *python,
					      struct python_thread *thread, uint64_t generation)
{
	const struct python_thread *entered;
	struct cache_variant *variant = cache->expected;

	if (cache->generation != generation) {
		begin_generation(cache, generation);
		return NULL;
	}
	if (!variant || variant->entry->base != regs ||
	    !inputs_are_equal(variant->entry, (const uint64_t *)regs))
		return find_other_stack(cache, regs, python, thread);
	entered = enter_python(variant->entry, python, thread);
	if (!python_is_equal(variant, python, entered))
		return find_other(cache, variant->entry, python, entered);
	if (!variant->object.is_used)
		variant->object.is_used = true;
	cache->last = variant;
	cache->expected = variant->next_hit;
	return variant;
}

static void fetch(const void *from, size_t bytes)
{
	if (bytes > FETCH_BYTES_MAX)
		bytes = FETCH_BYTES_MAX;
	for (size_t i = 0; i < bytes; i += 2 * CACHE_LINE_BYTES) {
		__builtin_prefetch((const char *)from + i);
		__builtin_prefetch((const char *)from + i + CACHE_LINE_BYTES);
	}
}

LIKELY void stack_cache_fetch_expected(const struct stack_cache *cache)
{
	const struct cache_variant *next = cache->expected;

	if (!next)
		return;
	fetch(next->entry, sizeof(struct cache_entry) + next->entry_inputs * CACHE_INPUT_BYTES);
	fetch(next->steps, next->step_count * sizeof(struct python_step) +
				   next->object.input_count * sizeof(struct python_input));
}

/* Stores the inputs; false if the offset of one is too large. */
static bool fill_inputs(struct cache_entry *entry, const struct stack_walk *walk)
{
	uint16_t *offsets = entry_offsets(entry);

	for (uint32_t i = 0; i < entry->object.input_count; i++) {
		const struct walk_input *input =
			&walk->inputs[i < walk->input_count ? i : walk->input_count - 1];
		uintptr_t distance = input->address - (uintptr_t)entry->base;

		if ((distance & 7) || distance / 8 > UINT16_MAX)
			return false;
		offsets[i] = (uint16_t)(distance / 8);
		entry->values[i] = input->value;
	}
	return true;
}

static uint32_t entry_inputs(const struct stack_walk *walk)
{
	return (walk->input_count + INPUTS_AT_ONCE - 1) / INPUTS_AT_ONCE * INPUTS_AT_ONCE;
}

static uint32_t entry_bytes(const struct stack_walk *walk)
{
	return in_lines(sizeof(struct cache_entry) + entry_inputs(walk) * CACHE_INPUT_BYTES) +
	       NODE_BYTES;
}

static uint32_t variant_bytes(const struct python_walk *python)
{
	return in_lines(sizeof(struct cache_variant) +
			python->step_count * sizeof(struct python_step) +
			(python->called_count + python->input_count) * sizeof(struct python_input) +
			python->run_count * sizeof(struct python_run) +
			python->copy_count * sizeof(uint64_t) + sizeof(uint64_t));
}

static struct cache_entry *add_entry(struct stack_cache *cache, const struct caller_regs *regs,
				     const struct stack_walk *walk, uint32_t python_stack_bytes)
{
	uint32_t used = cache->arena_used;
	struct cache_entry *entry =
		stack_cache_take(cache, entry_bytes(walk), CACHE_ENTRY, entry_inputs(walk));

	entry->base = regs;
	entry->python_stack_bytes = python_stack_bytes;
	if (!fill_inputs(entry, walk)) {
		cache->arena_used = used;
		return NULL;
	}
	stack_cache_place_entry(cache, entry);
	return entry;
}

/* Takes a free slot; there is always one. */
static uint16_t take_slot(struct stack_cache *cache)
{
	uint32_t word = cache->slot_next / 64;
	uint32_t slot;

	while (cache->slots_used[word] == UINT64_MAX)
		word++;
	slot = word * 64 + (uint32_t)__builtin_ctzll(~cache->slots_used[word]);
	cache->slots_used[word] |= UINT64_C(1) << slot % 64;
	cache->slot_next = slot + 1;
	cache->slot_count++;
	return (uint16_t)slot;
}

static void fill_variant(struct cache_variant *variant, const struct stack_walk *walk,
			 const struct python_walk *python)
{
	variant->entry_inputs = (uint16_t)entry_inputs(walk);
	variant->step_count = (uint16_t)python->step_count;
	variant->run_count = (uint16_t)python->run_count;
	variant->first_frame = python->first_frame;
	memcpy(variant->steps, python->steps, python->step_count * sizeof(*python->steps));
	*(uint64_t *)variant_hash(variant) = stack_cache_hash(walk, python);
	memcpy((void *)variant_inputs(variant), python->called,
	       python->called_count * sizeof(*python->called));
	memcpy((void *)(variant_inputs(variant) + python->called_count), python->inputs,
	       python->input_count * sizeof(*python->inputs));
	memcpy((void *)variant_runs(variant), python->runs,
	       python->run_count * sizeof(*python->runs));
	memcpy((void *)variant_copies(variant), python->copies,
	       python->copy_count * sizeof(*python->copies));
}

struct cache_variant *stack_cache_add(struct stack_cache *cache, const struct caller_regs *regs,
				      const struct stack_walk *walk,
				      const struct python_walk *python, bool is_in_torch,
				      uint64_t generation)
{
	uint32_t bytes = entry_bytes(walk) + variant_bytes(python) + NODE_BYTES;
	struct cache_variant *variant;
	struct cache_entry *entry;

	if (!walk->inputs_complete || !python->inputs_complete)
		return NULL;
	if (cache->generation != generation)
		begin_generation(cache, generation);
	if (cache->slot_count + XT_STACK_SLOTS_RESERVED == XT_STACK_SLOT_COUNT ||
	    !stack_cache_have_room(cache, bytes))
		stack_cache_make_room(cache);
	if (!stack_cache_have_room(cache, bytes))
		stack_cache_clear(cache);
	if (!stack_cache_have_room(cache, bytes))
		return NULL;
	entry = find_entry(cache, regs);
	if (!entry)
		entry = add_entry(cache, regs, walk, python->stack_bytes);
	if (!entry)
		return NULL;
	variant = stack_cache_take(cache, variant_bytes(python), CACHE_VARIANT,
				   python->called_count + python->input_count);
	*variant = (struct cache_variant){
		.object = variant->object,
		.entry = entry,
		.state = python->thread.state,
		.interpreter = python->thread.interpreter,
		.marked_slot = take_slot(cache) | (is_in_torch ? STACK_IN_TORCH : 0),
	};
	variant->object.has_modules = python->called_count != 0;
	fill_variant(variant, walk, python);
	stack_cache_place_variant(cache, variant);
	link_to_last(cache, variant);
	return variant;
}

void stack_cache_drop(struct stack_cache *cache, struct cache_variant *variant)
{
	struct cache_entry *entry = variant->entry;
	struct cache_entry **link = &cache->buckets[bucket_of(entry->base)];

	while (*link && *link != entry)
		link = &(*link)->chain;
	if (*link)
		*link = entry->chain;
	/* Variants of other entries may still expect variants of this one. */
	entry->base = NULL;
}

void stack_cache_begin(struct stack_cache *cache)
{
	if (cache->arena_bytes > CACHE_OWN_BYTES)
		budget_give_back(cache->arena_bytes - CACHE_OWN_BYTES);
	cache->arena_bytes = CACHE_OWN_BYTES;
	stack_cache_clear(cache);
}
