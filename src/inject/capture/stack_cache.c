/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack cache of one thread: an index, eviction, comparison, new entries. Runs at every launch
 * in the program's threads: no lock, no malloc, no system call. All memory is in the arena.
 *
 * The index has buckets of entries, and a tree of nodes with the variants of an entry.
 */
#include "inject/capture/stack_cache.h"

#include <string.h>

#include "inject/memory/memory.h"
#include "inject/python/python_modules.h"
#include "inject/runtime/hotpath.h"

#define CACHE_NODE_MANY	  4	      /* a node with more variants is split */
#define CACHE_STEP_BYTES  (64u << 10) /* unit of requests to the budget */
#define CACHE_INPUT_BYTES (sizeof(uint64_t) + sizeof(uint16_t)) /* of an entry */
#define NODE_BYTES	  CACHE_LINE_BYTES
#define NODE_TABLE_BYTES  ((1u << CACHE_NODE_BITS) * sizeof(struct cache_node *))

static inline uint32_t bucket_of(const void *base)
{
	return ((uintptr_t)base >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_BUCKET_BITS);
}

static inline struct cache_node **node_bucket(struct stack_cache *cache,
					      const struct cache_entry *entry, uint64_t key)
{
	uint64_t hash = (key ^ (uintptr_t)entry) * UINT64_C(0x9e3779b97f4a7c15);

	return &cache->nodes[hash >> (64 - CACHE_NODE_BITS)];
}

static inline struct cache_node *find_node(struct stack_cache *cache,
					   const struct cache_entry *entry, uint64_t key)
{
	struct cache_node *node = *node_bucket(cache, entry, key);

	while (node && (node->key != key || node->entry != entry))
		node = node->chain;
	return node;
}

static inline struct cache_node *entry_root(struct cache_entry *entry)
{
	return (struct cache_node *)((uint8_t *)entry + entry->object.bytes - NODE_BYTES);
}

static inline uint32_t in_lines(size_t bytes)
{
	return (uint32_t)((bytes + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1));
}

static inline const uint64_t *variant_hash(const struct cache_variant *variant)
{
	return (const uint64_t *)&variant->steps[variant->step_count];
}

/* The modules in the variant's key, or NULL. */
static inline const struct python_called *variant_modules(const struct cache_variant *variant)
{
	return variant->object.has_modules
		       ? (const struct python_called *)(variant_hash(variant) + 1)
		       : NULL;
}

/* Takes bytes from the arena, after have_room(). */
static void *take_bytes(struct stack_cache *cache, uint32_t bytes, enum cache_kind kind,
			uint32_t input_count)
{
	struct cache_object *taken = (struct cache_object *)(cache->arena + cache->arena_used);

	*taken = (struct cache_object){
		.bytes = bytes, .kind = (uint8_t)kind, .input_count = (uint16_t)input_count};
	cache->arena_used += bytes;
	return taken;
}

/* Adds an entry to its bucket, without variants; and a variant to the tree of its entry. */
static void place_entry(struct stack_cache *cache, struct cache_entry *entry)
{
	struct cache_entry **head = &cache->buckets[bucket_of(entry->base)];

	entry->native = NULL;
	*entry_root(entry) = (struct cache_node){.entry = entry};
	entry->chain = *head;
	*head = entry;
}

/* Adds the module of a step to a key, like find_leaf(). */
static uint64_t add_step_module(const struct cache_variant *variant, uint64_t key, uint32_t step)
{
	const struct python_called *self = variant_modules(variant);

	for (uint32_t i = 0, count = self ? self->left : 0; i < count; i++)
		if (self[i].step == step && !self[i].is_in_cell)
			return python_module_key(key, self[i].object);
	return key;
}

/* The child node, with one more frame, that the variant belongs to. */
static struct cache_node *child_of(struct stack_cache *cache, const struct cache_node *parent,
				   const struct cache_variant *variant)
{
	const struct python_step *step = &variant->steps[parent->frame_count];
	uint64_t key;
	struct cache_node *node, **bucket;

	/* The key that python_frame_key() computes. */
	if (parent->frame_count >= variant->step_count)
		key = python_path_key(parent->key, 0, 1);
	else if (step->owner >= PYTHON_OWNER_SHIM)
		key = python_path_key(parent->key, 0, 0);
	else
		key = add_step_module(variant,
				      python_path_key(parent->key, step->code, step->instruction),
				      parent->frame_count);
	node = find_node(cache, parent->entry, key);

	if (node)
		return node;
	bucket = node_bucket(cache, parent->entry, key);
	node = take_bytes(cache, NODE_BYTES, CACHE_NODE, 0);
	*node = (struct cache_node){.object = node->object,
				    .entry = parent->entry,
				    .chain = *bucket,
				    .key = key,
				    .frame_count = parent->frame_count + 1};
	*bucket = node;
	return node;
}

static void hang_up(struct cache_node *node, struct cache_variant *variant)
{
	variant->next = node->variants;
	node->variants = variant;
	node->variant_count++;
}

/* Whether the arena has that many bytes left, or the budget grants them. */
static bool have_room(struct stack_cache *cache, size_t bytes)
{
	while (CACHE_ARENA_BYTES - cache->arena_used >= bytes) {
		if (cache->arena_bytes - cache->arena_used >= bytes)
			return true;
		if (!budget_take(CACHE_STEP_BYTES))
			return false;
		cache->arena_bytes += CACHE_STEP_BYTES;
	}
	return false;
}

/* Variants with equal frames differ only in their code objects and cannot be split. */
static bool can_split(struct stack_cache *cache, const struct cache_node *node)
{
	if (!have_room(cache,
		       NODE_TABLE_BYTES + CACHE_LINE_BYTES + node->variant_count * NODE_BYTES))
		return false;
	for (const struct cache_variant *v = node->variants; v; v = v->next)
		if (v->step_count < node->frame_count)
			return false;
	return true;
}

static void split_node(struct stack_cache *cache, struct cache_node *node)
{
	struct cache_variant *variant = node->variants, *next;

	if (!cache->nodes) {
		cache->nodes =
			(void *)((uint8_t *)take_bytes(cache, NODE_TABLE_BYTES + CACHE_LINE_BYTES,
						       CACHE_NODE_TABLE, 0) +
				 CACHE_LINE_BYTES);
		memset(cache->nodes, 0, NODE_TABLE_BYTES);
	}
	node->is_split = true;
	node->variants = NULL;
	for (; variant; variant = next) {
		next = variant->next;
		hang_up(child_of(cache, node, variant), variant);
	}
}

static void place_variant(struct stack_cache *cache, struct cache_variant *variant)
{
	struct cache_node *node = entry_root(variant->entry);

	if (!variant->state) {
		variant->entry->native = variant;
		return;
	}
	while (node->is_split)
		node = child_of(cache, node, variant);
	hang_up(node, variant);
	if (node->variant_count >= CACHE_NODE_MANY && can_split(cache, node))
		split_node(cache, node);
}

void stack_cache_clear(struct stack_cache *cache)
{
	memset(cache->buckets, 0, sizeof(cache->buckets));
	memset(cache->slots_used, 0, sizeof(cache->slots_used));
	cache->slots_used[0] = 1 << XT_STACK_SLOT_TRANSIENT | 1 << XT_STACK_SLOT_CALLER;
	cache->slot_next = XT_STACK_SLOTS_RESERVED;
	cache->slot_count = 0;
	cache->nodes = NULL;
	cache->last = cache->expected = NULL;
	cache->arena_used = 0;
	cache->epoch++;
}

/*
 * Eviction removes at least an eighth of a full cache and compacts the rest, in place. It evicts
 * every second variant that was not hit since the last time. Stacks that came once thus leave
 * sooner or later. If more stacks recur than fit, some of them stay. Takes milliseconds, at most
 * once per few thousand new stacks.
 */
#define HIT_KEPT_OF 4 /* if too many were hit, evicts one of this many */

static struct cache_object *object_at(const struct stack_cache *cache, uint32_t offset)
{
	return (struct cache_object *)(cache->arena + offset);
}

/*
 * Compaction stores each surviving object's new address here and rebuilds the pointer afterwards.
 */
static void **new_address_of(struct cache_object *object)
{
	if (object->kind == CACHE_ENTRY)
		return (void **)&((struct cache_entry *)object)->chain;
	return (void **)&((struct cache_variant *)object)->next;
}

static bool is_variant(const struct cache_object *object)
{
	return object->kind == CACHE_VARIANT && ((const struct cache_variant *)object)->entry->base;
}

/* Whether more variants were hit than may stay. */
static bool too_many_were_hit(const struct stack_cache *cache)
{
	uint32_t used_bytes = 0, used_count = 0;

	for (uint32_t at = 0; at < cache->arena_used; at += object_at(cache, at)->bytes) {
		if (!is_variant(object_at(cache, at)) || !object_at(cache, at)->is_used)
			continue;
		used_bytes += object_at(cache, at)->bytes;
		used_count++;
	}
	return used_bytes > cache->arena_used / HIT_KEPT_OF * (HIT_KEPT_OF - 1) ||
	       used_count > cache->slot_count / HIT_KEPT_OF * (HIT_KEPT_OF - 1);
}

/*
 * Afterwards, is_used means that the object stays. An entry precedes its variants and stays if one
 * of them does.
 */
static void mark_survivors(struct stack_cache *cache)
{
	uint32_t hit_turn = (uint32_t)cache->epoch, unhit_turn = hit_turn;
	bool are_thinned = too_many_were_hit(cache);

	for (uint32_t at = 0; at < cache->arena_used; at += object_at(cache, at)->bytes) {
		struct cache_object *object = object_at(cache, at);
		bool was_hit = object->is_used;

		object->is_used = false;
		if (!is_variant(object))
			continue;
		object->is_used =
			was_hit ? !are_thinned || ++hit_turn % HIT_KEPT_OF : ++unhit_turn % 2;
		if (object->is_used)
			((struct cache_variant *)object)->entry->object.is_used = true;
	}
}

/* Assigns new addresses; returns the total size. */
static uint32_t assign_addresses(struct stack_cache *cache)
{
	uint32_t used = 0;

	for (uint32_t at = 0; at < cache->arena_used; at += object_at(cache, at)->bytes) {
		struct cache_object *object = object_at(cache, at);

		if (!object->is_used)
			continue;
		*new_address_of(object) = cache->arena + used;
		used += object->bytes;
	}
	return used;
}

static struct cache_variant *moved_variant(struct cache_variant *variant)
{
	return variant && variant->object.is_used ? *new_address_of(&variant->object) : NULL;
}

static void turn_pointers(struct stack_cache *cache)
{
	for (uint32_t at = 0; at < cache->arena_used; at += object_at(cache, at)->bytes) {
		struct cache_object *object = object_at(cache, at);
		struct cache_variant *variant = (struct cache_variant *)object;

		if (object->kind != CACHE_VARIANT || !object->is_used)
			continue;
		variant->entry = *new_address_of(&variant->entry->object);
		variant->next_hit = moved_variant(variant->next_hit);
	}
	cache->last = moved_variant(cache->last);
	cache->expected = moved_variant(cache->expected);
}

/* Moves objects to lower addresses, in order, so that none is overwritten before it has moved. */
static void move(struct stack_cache *cache)
{
	uint32_t bytes;

	for (uint32_t at = 0; at < cache->arena_used; at += bytes) {
		struct cache_object *object = object_at(cache, at);

		bytes = object->bytes;
		if (object->is_used)
			memmove(*new_address_of(object), object, bytes);
	}
}

/* Rebuilds the buckets, the trees and the free slots. False if there is no room for the trees. */
static bool rebuild_index(struct stack_cache *cache)
{
	uint32_t end = cache->arena_used;

	for (uint32_t at = 0; at < end; at += object_at(cache, at)->bytes) {
		struct cache_object *object = object_at(cache, at);
		struct cache_variant *variant = (struct cache_variant *)object;
		uint32_t slot;

		object->is_used = false;
		if (object->kind == CACHE_ENTRY) {
			place_entry(cache, (struct cache_entry *)object);
			continue;
		}
		if (!have_room(cache, CACHE_LINE_BYTES))
			return false;
		place_variant(cache, variant);
		slot = variant->marked_slot & ~STACK_IN_TORCH;
		cache->slots_used[slot / 64] |= UINT64_C(1) << slot % 64;
		cache->slot_count++;
	}
	return true;
}

/*
 * Evicts at least an eighth of a full stack cache and compacts the rest.
 *
 * It evicts every second variant that was not hit since the last eviction. If too many were hit, it
 * evicts some of those too. Pointers into the cache are void afterwards. Takes milliseconds, at
 * most once per few thousand new stacks. Used by the owning thread alone: no lock, no malloc, no
 * system call.
 */
static void make_room(struct stack_cache *cache)
{
	struct cache_variant *last, *expected;
	uint32_t used;

	mark_survivors(cache);
	used = assign_addresses(cache);
	turn_pointers(cache);
	move(cache);
	last = cache->last;
	expected = cache->expected;
	stack_cache_clear(cache);
	cache->arena_used = used;
	if (!rebuild_index(cache)) {
		stack_cache_clear(cache);
		return;
	}
	cache->last = last;
	cache->expected = expected;
}

#define FETCH_LINES_MAX 32 /* prefetching more would evict the program's data */

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
inputs_of_python_are_equal(const struct cache_variant *variant, uintptr_t innermost)
{
	const struct python_input *inputs = variant_inputs(variant);
	const struct python_called *called = variant_modules(variant);

	if (called &&
	    !python_modules_are_equal(&python_now()->layout, innermost, variant->steps, called))
		return false;
	for (uint32_t i = called ? called->left : 0; i < variant->object.input_count; i++)
		if ((__atomic_load_n(inputs[i].word, __ATOMIC_RELAXED) & inputs[i].mask) !=
		    inputs[i].value)
			return false;
	return runs_are_equal(variant);
}

/* Compares the chain first: if it has the same code objects, they are readable. */
LIKELY bool stack_cache_frames_are_equal(struct cache_variant *variant,
					 const struct python_runtime *python,
					 const struct python_thread *thread)
{
	return variant->state == thread->state && variant->interpreter == thread->interpreter &&
	       python_steps_are_equal(python, thread, variant->steps, variant->step_count) &&
	       !python_is_finalizing(python, thread->state) &&
	       (!variant->object.input_count ||
		inputs_of_python_are_equal(variant, thread->innermost));
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
static uint64_t add_frame_module(const struct python_layout *layout, uint64_t key, uintptr_t frame)
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
			key = add_frame_module(layout, key, frame);
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
	/* Programs without PyTorch do not pay for modules. */
	return python_modules_wanted &&
			       atomic_load_explicit(&python_module_codes[0], memory_order_relaxed)
		       ? descend(cache, entry, python, thread, true)
		       : descend(cache, entry, python, thread, false);
}

static struct cache_variant *find_variant(struct stack_cache *cache, struct cache_entry *entry,
					  const struct python_runtime *python,
					  const struct python_thread *thread)
{
	struct cache_variant **head;
	struct cache_node *node;

	node = find_leaf(cache, entry, python, thread);
	if (!node)
		return NULL;
	head = &node->variants;
	for (struct cache_variant **link = head; *link; link = &(*link)->next) {
		struct cache_variant *variant = *link;

		if (!stack_cache_frames_are_equal(variant, python, thread))
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

struct cache_variant *stack_cache_find_other(struct stack_cache *cache,
					     const struct caller_regs *regs,
					     const struct python_runtime *python,
					     struct python_thread *thread, uint64_t generation,
					     struct cache_entry *entry)
{
	struct cache_variant *variant;

	if (cache->generation != generation) {
		stack_cache_clear(cache);
		cache->generation = generation;
		return NULL;
	}
	if (!entry)
		entry = find_entry(cache, regs);
	if (!entry)
		return NULL;
	variant = enter_python(entry, python, thread) ? find_variant(cache, entry, python, thread)
						      : entry->native;
	if (!variant)
		return NULL;
	variant->object.is_used = true;
	link_to_last(cache, variant);
	return variant;
}

/* Whether the memory of an input can be read if that of another input can. */
static bool is_on_page_of(const struct walk_input *input, uintptr_t address)
{
	return !((input->address ^ address) & ~(uintptr_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1));
}

struct entry_layout {
	uint32_t input_count, run_count;
};

/*
 * Divides the inputs into runs. A run begins with an input that is read only if all earlier ones
 * are equal, as in a walk. Its other inputs are on the same page, or on that of the registers, so
 * they are readable whatever their values are. If `entry` is given, stores the inputs.
 */
static struct entry_layout lay_out(const struct stack_walk *walk, const struct caller_regs *regs,
				   struct cache_entry *entry)
{
	uint16_t *offsets = entry ? entry_offsets(entry) : NULL;
	uint16_t *ends = entry ? entry_run_ends(entry) : NULL;
	struct entry_layout layout = {0};
	uintptr_t first = 0;

	for (uint32_t i = 0; i < walk->input_count; i++) {
		const struct walk_input *input = &walk->inputs[i];
		bool ends_run = i + 1 == walk->input_count ||
				!(is_on_page_of(input + 1, first ? first : input->address) ||
				  is_on_page_of(input + 1, (uintptr_t)regs));

		if (!first)
			first = input->address;
		do {
			if (entry) {
				offsets[layout.input_count] =
					(uint16_t)((input->address - (uintptr_t)regs) / 8);
				entry->values[layout.input_count] = input->value;
			}
			layout.input_count++;
		} while (ends_run && layout.input_count % INPUTS_AT_ONCE);
		if (!ends_run)
			continue;
		if (entry)
			ends[layout.run_count] = (uint16_t)layout.input_count;
		layout.run_count++;
		first = 0;
	}
	return layout;
}

/* Whether all inputs are at offsets that an entry can store. */
static bool inputs_fit(const struct stack_walk *walk, const struct caller_regs *regs)
{
	for (uint32_t i = 0; i < walk->input_count; i++) {
		uintptr_t distance = walk->inputs[i].address - (uintptr_t)regs;

		if ((distance & 7) || distance / 8 > UINT16_MAX)
			return false;
	}
	return walk->input_count != 0;
}

/* Without the root of its variants. */
static uint32_t entry_bytes(struct entry_layout layout)
{
	return in_lines(sizeof(struct cache_entry) + layout.input_count * CACHE_INPUT_BYTES +
			layout.run_count * sizeof(uint16_t));
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
				     const struct stack_walk *walk, struct entry_layout layout,
				     uint32_t python_stack_bytes)
{
	struct cache_entry *entry = take_bytes(cache, entry_bytes(layout) + NODE_BYTES, CACHE_ENTRY,
					       layout.input_count);

	entry->base = regs;
	entry->python_stack_bytes = python_stack_bytes;
	lay_out(walk, regs, entry);
	place_entry(cache, entry);
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

static uint16_t lines_to_fetch(size_t bytes)
{
	uint32_t lines = in_lines(bytes) / CACHE_LINE_BYTES;

	return (uint16_t)(lines < FETCH_LINES_MAX ? lines : FETCH_LINES_MAX);
}

static void fill_variant(struct cache_variant *variant, const struct stack_walk *walk,
			 const struct python_walk *python)
{
	variant->step_count = (uint16_t)python->step_count;
	variant->run_count = (uint16_t)python->run_count;
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
	struct entry_layout layout = lay_out(walk, regs, NULL);
	uint32_t bytes = entry_bytes(layout) + variant_bytes(python) + 2 * NODE_BYTES;
	struct cache_variant *variant;
	struct cache_entry *entry;

	if (!walk->inputs_complete || !python->inputs_complete || !inputs_fit(walk, regs))
		return NULL;
	if (cache->generation != generation) {
		stack_cache_clear(cache);
		cache->generation = generation;
	}
	if (cache->slot_count + XT_STACK_SLOTS_RESERVED == XT_STACK_SLOT_COUNT ||
	    !have_room(cache, bytes))
		make_room(cache);
	if (!have_room(cache, bytes))
		stack_cache_clear(cache);
	if (!have_room(cache, bytes))
		return NULL;
	entry = find_entry(cache, regs);
	if (!entry)
		entry = add_entry(cache, regs, walk, layout, python->stack_bytes);
	variant = take_bytes(cache, variant_bytes(python), CACHE_VARIANT,
			     python->called_count + python->input_count);
	*variant = (struct cache_variant){
		.object = variant->object,
		.entry = entry,
		.state = python->thread.state,
		.interpreter = python->thread.interpreter,
		.marked_slot = take_slot(cache) | (is_in_torch ? STACK_IN_TORCH : 0),
		.entry_lines = lines_to_fetch(entry->object.bytes - NODE_BYTES),
		.own_lines =
			lines_to_fetch(python->step_count * sizeof(struct python_step) +
				       variant->object.input_count * sizeof(struct python_input)),
	};
	variant->object.has_modules = python->called_count != 0;
	fill_variant(variant, walk, python);
	place_variant(cache, variant);
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
