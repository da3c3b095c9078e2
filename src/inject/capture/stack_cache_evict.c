/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evicts from a full stack cache and compacts the rest, in place. Evicts every second variant that
 * was not hit since the last time. Stacks that came once thus leave sooner or later. If more stacks
 * recur than fit, some of them stay. Runs in the owner's thread: no lock, no malloc, no system
 * call.
 */
#include "inject/capture/stack_cache_evict.h"

#include <string.h>

#include "inject/capture/stack_cache_index.h"
#include "inject/runtime/hotpath.h"

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
			stack_cache_place_entry(cache, (struct cache_entry *)object);
			continue;
		}
		if (!stack_cache_have_room(cache, CACHE_LINE_BYTES))
			return false;
		stack_cache_place_variant(cache, variant);
		slot = variant->marked_slot & ~STACK_IN_TORCH;
		cache->slots_used[slot / 64] |= UINT64_C(1) << slot % 64;
		cache->slot_count++;
	}
	return true;
}

void stack_cache_make_room(struct stack_cache *cache)
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
