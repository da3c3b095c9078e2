/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of the stack cache: the arena, the buckets of entries, and the tree of nodes with the
 * variants of an entry. Used only by the owning thread: no lock, no malloc, no system call.
 */
#ifndef XT_INJECT_STACK_CACHE_INDEX_H
#define XT_INJECT_STACK_CACHE_INDEX_H

#include "inject/capture/stack_cache.h"

#define NODE_BYTES	 CACHE_LINE_BYTES
#define NODE_TABLE_BYTES ((1u << CACHE_NODE_BITS) * sizeof(struct cache_node *))

static inline uint32_t bucket_of(const void *base)
{
	return ((uintptr_t)base >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_BUCKET_BITS);
}

static inline struct cache_node *entry_root(struct cache_entry *entry)
{
	return (struct cache_node *)((uint8_t *)entry + entry->object.bytes - NODE_BYTES);
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

/* Takes bytes from the arena, after stack_cache_have_room(). */
void *stack_cache_take(struct stack_cache *cache, uint32_t bytes, enum cache_kind kind,
		       uint32_t input_count);

/* Whether the arena has that many bytes left, or the budget grants them. */
bool stack_cache_have_room(struct stack_cache *cache, size_t bytes);

/* Adds an entry to its bucket, without variants; and a variant to the tree of its entry. */
void stack_cache_place_entry(struct stack_cache *cache, struct cache_entry *entry);
void stack_cache_place_variant(struct stack_cache *cache, struct cache_variant *variant);

/* Empties the cache. All slots are free again. */
void stack_cache_clear(struct stack_cache *cache);

#endif
