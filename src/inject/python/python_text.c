/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python strings have 1, 2 or 4 bytes per character. The text follows a head whose size depends on
 * whether it is ASCII; strings of subclasses of str have it elsewhere. Runs in the program's
 * threads on the cold path.
 */
#include "inject/python/python_text.h"

#include "inject/python/python_read.h"
#include "python/python_layout.h"

#define CHARACTERS_MAX (UINT64_C(1) << 30)

struct string {
	uint64_t text;	 /* start of the text */
	uint64_t length; /* in characters */
	unsigned character_bytes;
};

/* Bits above the kind: compact (the text follows the head) and ASCII. */
#define KIND_MASK	   7u
#define COMPACT_BIT	   3
#define ASCII_BIT	   4
#define STATE_MASK	   31u
#define HASH_BEHIND_LENGTH 8
#define FLAGS_BEHIND_NAME  144 /* of a type object, in all versions */
#define FLAG_OF_STR	   (UINT64_C(1) << 28)
#define NO_HASH		   UINT64_MAX

/* If the string's hash is computed, it identifies the whole text. */
static bool note_string(struct python_walk *walk, uintptr_t object, const struct string *string,
			uint64_t hash)
{
	const struct python_layout *layout = &walk->python->layout;
	uintptr_t state = object + layout->str_state;
	uint64_t word;

	if (hash != NO_HASH)
		return python_read(walk, object + layout->str_length + HASH_BEHIND_LENGTH, 8, true,
				   &hash);
	if (!python_read(walk, object + layout->str_length, 8, true, &word) ||
	    !python_read(walk, state & ~(uintptr_t)7, 8, false, &word))
		return false;
	python_add_input(walk, state, (uint64_t)STATE_MASK << layout->str_kind_bit << state % 8 * 8,
			 word);
	return python_add_input_bytes(walk, string->text, string->length * string->character_bytes);
}

/* Accepts subclasses of str. */
static bool is_string(struct python_walk *walk, uintptr_t object)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t type, flags;

	if (object % 8 || !python_read(walk, object + layout->object_type, 8, false, &type) ||
	    type % 8 ||
	    !python_read(walk, type + layout->type_name + FLAGS_BEHIND_NAME, 8, false, &flags))
		return false;
	return flags & FLAG_OF_STR || python_is_a(walk, object, "str");
}

static bool open_string(struct python_walk *walk, uintptr_t object, bool as_input,
			struct string *string)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t state, hash;

	if (!is_string(walk, object) ||
	    !python_read(walk, object + layout->str_length, 8, false, &string->length) ||
	    !python_read(walk, object + layout->str_state, 4, false, &state) ||
	    !python_read(walk, object + layout->str_length + HASH_BEHIND_LENGTH, 8, false, &hash))
		return false;
	state >>= layout->str_kind_bit;
	string->character_bytes = state & KIND_MASK;
	string->text = object + (state & 1u << ASCII_BIT ? layout->str_ascii_bytes
							 : layout->str_compact_bytes);
	if (!(state & 1u << COMPACT_BIT) &&
	    !python_read(walk, object + layout->str_compact_bytes, 8, as_input, &string->text))
		return false;
	if (string->length > CHARACTERS_MAX ||
	    (string->character_bytes != 1 && string->character_bytes != 2 &&
	     string->character_bytes != 4)) {
		walk->is_unreadable = true;
		walk->inputs_complete = false;
		return false;
	}
	return !as_input || note_string(walk, object, string, hash);
}

static uint32_t character_at(const struct string *string, uint64_t index)
{
	const void *at = (const void *)(string->text + index * string->character_bytes);

	if (string->character_bytes == 1)
		return *(const uint8_t *)at;
	return string->character_bytes == 2 ? *(const uint16_t *)at : *(const uint32_t *)at;
}

/* The most UTF-8 bytes that one character needs. */
static unsigned bytes_at_most(const struct string *string)
{
	static const uint8_t bytes[] = {[1] = 2, [2] = 3, [4] = 4};

	return bytes[string->character_bytes];
}

/* Each text is an input only once per walk. */
static bool is_noted(struct python_walk *walk, uintptr_t object)
{
	for (uint32_t i = 0; i < walk->noted_count; i++)
		if (walk->noted_objects[i] == object)
			return true;
	if (walk->noted_count < sizeof(walk->noted_objects) / sizeof(walk->noted_objects[0]))
		walk->noted_objects[walk->noted_count++] = object;
	return false;
}

bool python_text(struct python_walk *walk, uintptr_t object, enum python_keep keep, bool as_input,
		 uint8_t *out, size_t out_bytes, uint16_t *bytes_out)
{
	uint64_t first = 0, fitting;
	struct string string;
	size_t used = 0;

	if (!open_string(walk, object, as_input && !is_noted(walk, object), &string) ||
	    !python_can_read(walk, string.text, string.length * string.character_bytes))
		return false;
	fitting = out_bytes / bytes_at_most(&string);
	if (keep == PYTHON_KEEP_END && string.length > fitting)
		first = string.length - fitting;
	for (uint64_t i = first; i < string.length && out_bytes - used >= 4; i++)
		used += python_put_character(out + used, character_at(&string, i));
	*bytes_out = (uint16_t)used;
	return true;
}
