/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memo that is full forgets every other path of those that were not hit of late, and puts what it keeps together: what
 * came once goes sooner or later, and of paths that come in turn, and are more than fit, some stay. Runs in the application's threads, at most once in some thousand stacks that are new: no lock, no malloc, no system call;
 * the memory is the memo's own, and all is done in place.
 */
#include "inject/capture/stack_cache.h"

#include <string.h>

#include "inject/runtime/hotpath.h"

#define HIT_KEPT_OF 4 /* of those that were hit, all but one of so many are kept at most */

static struct memo_object *object_at(const struct stack_memo *memo, uint32_t offset)
{
	return (struct memo_object *)(memo->arena + offset);
}

/* Of objects that stay, where they will be stands in a pointer that is made anew later. */
static void **moved_to(struct memo_object *object)
{
	if (object->kind == MEMO_ENTRY)
		return (void **)&((struct memo_entry *)object)->chain;
	return (void **)&((struct memo_variant *)object)->next;
}

static bool is_variant(const struct memo_object *object)
{
	return object->kind == MEMO_VARIANT && ((const struct memo_variant *)object)->entry->base;
}

/* More were hit than may stay. */
static bool are_too_many(const struct stack_memo *memo)
{
	uint32_t used_bytes = 0, used_count = 0;

	for (uint32_t at = 0; at < memo->arena_used; at += object_at(memo, at)->bytes) {
		if (!is_variant(object_at(memo, at)) || !object_at(memo, at)->is_used)
			continue;
		used_bytes += object_at(memo, at)->bytes;
		used_count++;
	}
	return used_bytes > memo->arena_used / HIT_KEPT_OF * (HIT_KEPT_OF - 1) ||
	       used_count > memo->slot_count / HIT_KEPT_OF * (HIT_KEPT_OF - 1);
}

/* From now on is_used says of an object that it stays. An entry lies before its variants, and stays for them. */
static void choose(struct stack_memo *memo)
{
	uint32_t hit_turn = (uint32_t)memo->epoch, unhit_turn = hit_turn;
	bool are_thinned = are_too_many(memo);

	for (uint32_t at = 0; at < memo->arena_used; at += object_at(memo, at)->bytes) {
		struct memo_object *object = object_at(memo, at);
		bool was_hit = object->is_used;

		object->is_used = false;
		if (!is_variant(object))
			continue;
		object->is_used =
			was_hit ? !are_thinned || ++hit_turn % HIT_KEPT_OF : ++unhit_turn % 2;
		if (object->is_used)
			((struct memo_variant *)object)->entry->object.is_used = true;
	}
}

/* Gives each its new place; how much they take. */
static uint32_t assign_places(struct stack_memo *memo)
{
	uint32_t used = 0;

	for (uint32_t at = 0; at < memo->arena_used; at += object_at(memo, at)->bytes) {
		struct memo_object *object = object_at(memo, at);

		if (!object->is_used)
			continue;
		*moved_to(object) = memo->arena + used;
		used += object->bytes;
	}
	return used;
}

static struct memo_variant *moved_variant(struct memo_variant *variant)
{
	return variant && variant->object.is_used ? *moved_to(&variant->object) : NULL;
}

static void turn_pointers(struct stack_memo *memo)
{
	for (uint32_t at = 0; at < memo->arena_used; at += object_at(memo, at)->bytes) {
		struct memo_object *object = object_at(memo, at);
		struct memo_variant *variant = (struct memo_variant *)object;

		if (object->kind != MEMO_VARIANT || !object->is_used)
			continue;
		variant->entry = *moved_to(&variant->entry->object);
		variant->next_hit = moved_variant(variant->next_hit);
	}
	memo->last = moved_variant(memo->last);
	memo->expected = moved_variant(memo->expected);
}

/* Each goes down, in order, so that none is written over before it has gone. */
static void move(struct stack_memo *memo)
{
	uint32_t bytes;

	for (uint32_t at = 0; at < memo->arena_used; at += bytes) {
		struct memo_object *object = object_at(memo, at);

		bytes = object->bytes;
		if (object->is_used)
			memmove(*moved_to(object), object, bytes);
	}
}

/* As if they were new: the tables, the trees, and which slots are free. False: there is no room for the trees. */
static bool place_all(struct stack_memo *memo)
{
	uint32_t end = memo->arena_used;

	for (uint32_t at = 0; at < end; at += object_at(memo, at)->bytes) {
		struct memo_object *object = object_at(memo, at);
		struct memo_variant *variant = (struct memo_variant *)object;

		object->is_used = false;
		if (object->kind == MEMO_ENTRY) {
			stack_memo_place_entry(memo, (struct memo_entry *)object);
			continue;
		}
		if (!stack_memo_have_room(memo, MEMO_LINE_BYTES))
			return false;
		stack_memo_place_variant(memo, variant);
		memo->slots_used[variant->slot / 64] |= UINT64_C(1) << variant->slot % 64;
		memo->slot_count++;
	}
	return true;
}

void stack_memo_make_room(struct stack_memo *memo)
{
	struct memo_variant *last, *expected;
	uint32_t used;

	choose(memo);
	used = assign_places(memo);
	turn_pointers(memo);
	move(memo);
	last = memo->last;
	expected = memo->expected;
	stack_memo_clear(memo);
	memo->arena_used = used;
	if (!place_all(memo)) {
		stack_memo_clear(memo);
		return;
	}
	memo->last = last;
	memo->expected = expected;
}
