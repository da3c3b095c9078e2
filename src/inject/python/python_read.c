/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a page is readable before reading it. Inputs are stored as they were read. Runs in
 * the program's threads on the cold path.
 *
 * Python strings have 1, 2 or 4 bytes per character. The text follows a head whose size depends on
 * whether it is ASCII; strings of subclasses of str have it elsewhere.
 */
#include "inject/python/python_read.h"

#include <string.h>

#include "inject/memory/memory.h"
#include "python/python_layout.h"

/* Reads the aligned word that contains `address`; false if not readable. */
static bool word_at(struct python_walk *walk, uintptr_t address, uint64_t *out)
{
	const uintptr_t page = address & ~(uintptr_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1);
	uintptr_t *known = &walk->readable_pages[address / XT_CRASH_BUFFER_PAGE_BYTES % 16];

	/* The other thread may unmap it meanwhile. */
	if (walk->is_of_other_thread) {
		if (read_memory(out, address & ~(uintptr_t)7, sizeof(*out)))
			return true;
		walk->is_unreadable = true;
		return false;
	}
	if (*known != page) {
		if (!page || !stack_walk_can_read(page)) {
			walk->is_unreadable = true;
			walk->inputs_complete = false;
			return false;
		}
		*known = page;
	}
	*out = __atomic_load_n((const uint64_t *)(address & ~(uintptr_t)7), __ATOMIC_RELAXED);
	return true;
}

bool python_read(struct python_walk *walk, uintptr_t address, unsigned bytes, bool as_input,
		 uint64_t *out)
{
	unsigned shift = address % 8 * 8;
	uint64_t mask = bytes == 8 ? UINT64_MAX : ((UINT64_C(1) << bytes * 8) - 1) << shift;
	uint64_t word;

	if (!word_at(walk, address, &word))
		return false;
	if (as_input)
		python_add_input(walk, address, mask, word);
	*out = (word & mask) >> shift;
	return true;
}

void python_add_input(struct python_walk *walk, uintptr_t address, uint64_t mask, uint64_t word)
{
	if (walk->input_count == PYTHON_INPUTS_MAX) {
		walk->inputs_complete = false;
		return;
	}
	walk->inputs[walk->input_count++] = (struct python_input){
		.word = (const uint64_t *)(address & ~(uintptr_t)7),
		.mask = mask,
		.value = word & mask,
	};
}

static bool note_run(struct python_walk *walk, uintptr_t address, uint32_t count)
{
	uint64_t *copy = walk->copies + walk->copy_count;

	if (!count)
		return true;
	if (walk->run_count == PYTHON_RUNS_MAX ||
	    count > PYTHON_COPY_WORDS_MAX - walk->copy_count) {
		walk->inputs_complete = false;
		return true;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!word_at(walk, address + i * 8, &copy[i]))
			return false;
	walk->runs[walk->run_count++] =
		(struct python_run){(const uint64_t *)address, count, walk->copy_count};
	walk->copy_count += count;
	return true;
}

bool python_add_input_bytes(struct python_walk *walk, uintptr_t address, size_t bytes)
{
	uint64_t mask = (UINT64_C(1) << bytes % 8 * 8) - 1, last;

	if (!note_run(walk, address, (uint32_t)(bytes / 8)))
		return false;
	if (!mask)
		return true;
	if (!word_at(walk, address + (bytes & ~(size_t)7), &last))
		return false;
	python_add_input(walk, address + (bytes & ~(size_t)7), mask, last);
	return true;
}

bool python_can_read(struct python_walk *walk, uintptr_t address, size_t bytes)
{
	uint64_t word;

	for (uintptr_t at = address & ~(uintptr_t)7; at < address + bytes;
	     at = (at | (XT_CRASH_BUFFER_PAGE_BYTES - 1)) + 1)
		if (!word_at(walk, at, &word))
			return false;
	return true;
}

bool python_is_a(struct python_walk *walk, uintptr_t object, const char *type_name)
{
	const struct python_layout *layout = &walk->python->layout;
	size_t bytes = strlen(type_name) + 1;
	uint64_t type, name;

	if (object % 8 || !python_read(walk, object + layout->object_type, 8, false, &type) ||
	    type % 8 || !python_read(walk, type + layout->type_name, 8, false, &name) ||
	    !python_can_read(walk, name, bytes))
		return false;
	if (!memcmp((const void *)name, type_name, bytes))
		return true;
	walk->is_unreadable = true;
	walk->inputs_complete = false;
	return false;
}

bool python_ends_with(const void *text, size_t bytes, const char *end)
{
	size_t end_bytes = strlen(end);

	return bytes >= end_bytes &&
	       !memcmp((const uint8_t *)text + bytes - end_bytes, end, end_bytes);
}

bool python_has_type(const struct python_layout *layout, uintptr_t object, const char *type_name)
{
	uintptr_t type, name;
	char text[16];

	return read_memory(&type, object + layout->object_type, sizeof(type)) &&
	       read_memory(&name, type + layout->type_name, sizeof(name)) &&
	       read_memory_text(text, sizeof(text), name) && !strcmp(text, type_name);
}

#define CHARACTERS_MAX (UINT64_C(1) << 30)

struct string {
	uint64_t text;	 /* start of the text */
	uint64_t length; /* in characters */
	unsigned character_bytes;
};

/* Bits above the kind: compact (the text follows the head) and ASCII. */
#define KIND_MASK	  7u
#define COMPACT_BIT	  3
#define ASCII_BIT	  4
#define STATE_MASK	  31u
#define FLAGS_BEHIND_NAME 144 /* of a type object, in all versions */

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
