/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts: one block of bytes, the offsets of the texts, and a hash table of their numbers.
 */
#include "merge/base/names.h"

#include <string.h>

#include "log/base/grow.h"

struct name_place {
	size_t offset;
	uint32_t length;
};

bool names_try_init(struct names *names)
{
	*names = (struct names){0};
	if (names_try_intern(names, "", 0) == NAME_EMPTY)
		return true;
	names_free(names);
	return false;
}

void names_free(struct names *names)
{
	free_all(names->text, names->places);
	xt_hash_free(&names->by_text);
	*names = (struct names){0};
}

uint32_t names_try_intern(struct names *names, const void *text, size_t length)
{
	uint32_t hash = xt_hash_bytes(text, length);
	struct xt_hash_table *table = &names->by_text;
	struct name_place *place;
	struct xt_hash_slot *slot;

	if (names->count >= table->slot_count / 2 && !xt_hash_reserve(table, names->count + 1))
		return NAME_FAILED;
	for (slot = xt_hash_first(table, hash); slot->item; slot = xt_hash_next(table, slot)) {
		place = &names->places[slot->item - 1];
		if (place->length == length &&
		    (!length || !memcmp(names->text + place->offset, text, length)))
			return slot->item - 1;
	}
	if (length >= UINT32_MAX || names->count >= UINT32_MAX / 4 ||
	    grow(names->text, names->text_capacity, names->text_used + length + 1) < 0 ||
	    grow(names->places, names->place_capacity, names->count + 1) < 0)
		return NAME_FAILED;
	place = &names->places[names->count];
	*place = (struct name_place){names->text_used, (uint32_t)length};
	if (length)
		memcpy(names->text + names->text_used, text, length);
	names->text[names->text_used + length] = '\0';
	names->text_used += length + 1;
	*slot = (struct xt_hash_slot){hash, ++names->count};
	return names->count - 1;
}

const char *names_text(const struct names *names, uint32_t name, size_t *length_out)
{
	if (name >= names->count)
		name = NAME_EMPTY;
	if (length_out)
		*length_out = names->places[name].length;
	return names->text + names->places[name].offset;
}
