/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/capture/stack_cache_index.h"

#include <string.h>
#include "inject/memory/budget.h"
#include "inject/python/python_modules.h"
#include "inject/runtime/hotpath.h"

/* The caller has checked that the arena has room. */
void *stack_cache_take(struct stack_cache *cache, uint32_t bytes, enum cache_kind kind,
		       uint32_t input_count)
{
	struct cache_object *taken = (struct cache_object *)(cache->arena + cache->arena_used);

	*taken = (struct cache_object){
		.bytes = bytes, .kind = (uint8_t)kind, .input_count = (uint16_t)input_count};
	cache->arena_used += bytes;
	return taken;
}

void stack_cache_place_entry(struct stack_cache *cache, struct cache_entry *entry)
{
	struct cache_entry **head = &cache->buckets[bucket_of(entry->base)];

	entry->native = NULL;
	*entry_root(entry) = (struct cache_node){.entry = entry};
	entry->chain = *head;
	*head = entry;
}

/* Adds the module of a step to a key, like find_leaf() in stack_cache.c. */
static uint64_t add_module(const struct cache_variant *variant, uint64_t key, uint32_t step)
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
		key = add_module(variant,
				 python_path_key(parent->key, step->code, step->instruction),
				 parent->frame_count);
	node = find_node(cache, parent->entry, key);

	if (node)
		return node;
	bucket = node_bucket(cache, parent->entry, key);
	node = stack_cache_take(cache, NODE_BYTES, CACHE_NODE, 0);
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

bool stack_cache_have_room(struct stack_cache *cache, size_t bytes)
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
	if (!stack_cache_have_room(cache, NODE_TABLE_BYTES + CACHE_LINE_BYTES +
						  node->variant_count * NODE_BYTES))
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
		cache->nodes = (void *)((uint8_t *)stack_cache_take(
						cache, NODE_TABLE_BYTES + CACHE_LINE_BYTES,
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

void stack_cache_place_variant(struct stack_cache *cache, struct cache_variant *variant)
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
