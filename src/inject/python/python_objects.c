/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets that differ between versions are in struct python_layout. Those below are the same in all
 * of them, for builds with a global lock.
 */
#include "inject/python/python_objects.h"

#include <stdatomic.h>
#include <string.h>

#include "inject/python/python_read.h"
#include "inject/runtime/read_memory.h"
#include "python/python_layout.h"

#define CLASS_BYTES	   296 /* to the end of the offset of the dict */
#define CLASS_INSTANCE	   32
#define CLASS_FLAGS	   168
#define CLASS_DICT_OFFSET  288
#define DICT_KEYS	   32
#define DICT_VALUES	   40
#define DICT_BYTES	   48
#define KEYS_SIZE	   8 /* to 3.10 */
#define KEYS_SHAPE	   8 /* later: logarithm of the size, of the index bytes, kind */
#define KEYS_SHAPE_MASK	   UINT64_C(0xffffff)
#define KEYS_BYTES	   40
#define KEYS_LOG_MAX	   30
#define KIND_GENERAL	   0
#define KIND_LAST	   2
#define VALUES_VALID	   3 /* from 3.13: a byte of the values in an object */
#define VALUES_VALID_MASK  (UINT64_C(0xff) << VALUES_VALID * 8)
#define WORDS_BEFORE	   4 /* words before an object: values, dict, garbage collection */
#define HASH_BEHIND_LENGTH 8
#define NO_HASH		   UINT64_MAX
#define STR_HEAD_BYTES	   40
#define CHARACTERS_MAX	   512
#define MODULES_NAME	   "_modules"

#define FLAG_EMBEDS_VALUES (UINT64_C(1) << 2) /* from 3.13 */
#define FLAG_MANAGES_DICT  (UINT64_C(1) << 4) /* from 3.11 */
#define FLAG_IS_READY	   (UINT64_C(1) << 12)
#define FLAG_OF_STR	   (UINT64_C(1) << 28)
#define FLAG_OF_DICT	   (UINT64_C(1) << 29)
#define FLAG_OF_CLASS	   (UINT64_C(1) << 31)

static const struct python_layout *layout_of(const struct object_reader *reader)
{
	return &reader->walk->python->layout;
}

static void note(struct object_reader *reader, uintptr_t at, uint64_t mask, uint64_t word)
{
	if (reader->notes)
		python_add_input(reader->walk, at, mask, word);
}

static bool copy(uint64_t *to, uintptr_t from, size_t bytes)
{
	return from % 8 == 0 && read_memory(to, from, bytes);
}

/* Reads a word that the result depends on. */
static bool get(struct object_reader *reader, uintptr_t at, uint64_t *out)
{
	if (!copy(out, at, sizeof(*out)))
		return false;
	note(reader, at, UINT64_MAX, *out);
	return true;
}

static bool read_flags(uintptr_t class, uint64_t *flags_out)
{
	return copy(flags_out, class + CLASS_FLAGS, sizeof(*flags_out)) &&
	       *flags_out & FLAG_IS_READY;
}

/* Reads a class, which must be an instance of a class of classes. */
static bool read_class(struct object_reader *reader, uintptr_t address, struct object_class *out)
{
	const struct python_layout *layout = layout_of(reader);
	struct object_class *kept = &reader->classes[address / 64 % OBJECT_CLASSES_KEPT];
	uint64_t words[CLASS_BYTES / 8], flags;

	if (kept->address != address) {
		if (!copy(words, address, CLASS_BYTES) ||
		    !(words[CLASS_FLAGS / 8] & FLAG_IS_READY) ||
		    !read_flags(words[layout->object_type / 8], &flags) || !(flags & FLAG_OF_CLASS))
			return false;
		*kept = (struct object_class){.address = address,
					      .name = words[layout->type_name / 8],
					      .flags = words[CLASS_FLAGS / 8],
					      .instance_bytes = words[CLASS_INSTANCE / 8],
					      .dict_offset = words[CLASS_DICT_OFFSET / 8]};
	}
	*out = *kept;
	return true;
}

/* Reads an object's class and makes an input of it. */
static bool class_of(struct object_reader *reader, uintptr_t object, struct object_class *out)
{
	uint64_t class;

	return get(reader, object + layout_of(reader)->object_type, &class) &&
	       read_class(reader, class, out);
}

static bool open_keys(struct object_reader *reader, uintptr_t keys, struct object_entries *out)
{
	const struct python_layout *layout = layout_of(reader);
	uint64_t words[KEYS_BYTES / 8], size, index_bytes, count, kind = KIND_GENERAL;

	if (!copy(words, keys, KEYS_BYTES))
		return false;
	count = words[layout->keys_count / 8];
	if (layout->keys_are_sized) {
		size = words[KEYS_SIZE / 8];
		index_bytes = size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
		note(reader, keys + KEYS_SIZE, UINT64_MAX, size);
	} else {
		uint64_t shape = words[KEYS_SHAPE / 8];

		kind = shape >> 16 & 0xff;
		if ((shape & 0xff) > KEYS_LOG_MAX || (shape >> 8 & 0xff) > KEYS_LOG_MAX + 3 ||
		    kind > KIND_LAST)
			return false;
		size = UINT64_C(1) << (shape & 0xff);
		index_bytes = UINT64_C(1) << (shape >> 8 & 0xff);
		note(reader, keys + KEYS_SHAPE, KEYS_SHAPE_MASK, shape);
	}
	if (size > UINT64_C(1) << KEYS_LOG_MAX || count > size)
		return false;
	*out = (struct object_entries){.first = keys + layout->keys_indices + index_bytes,
				       .count = (uint32_t)count,
				       .entry_bytes = kind == KIND_GENERAL ? 24 : 16,
				       .key_at = kind == KIND_GENERAL ? 8 : 0};
	return true;
}

/* Opens a dict. *values_out: the values of a split one, or 0. */
static bool open_dict(struct object_reader *reader, uintptr_t dict, struct object_entries *out,
		      uintptr_t *values_out)
{
	const uint32_t type = layout_of(reader)->object_type;
	uint64_t words[DICT_BYTES / 8];
	struct object_class class;

	if (!copy(words, dict, DICT_BYTES) || !read_class(reader, words[type / 8], &class) ||
	    !(class.flags & FLAG_OF_DICT))
		return false;
	note(reader, dict + type, UINT64_MAX, class.address);
	note(reader, dict + DICT_KEYS, UINT64_MAX, words[DICT_KEYS / 8]);
	note(reader, dict + DICT_VALUES, UINT64_MAX, words[DICT_VALUES / 8]);
	*values_out = words[DICT_VALUES / 8];
	return open_keys(reader, words[DICT_KEYS / 8], out);
}

/* Opens attributes that have no dict yet: the class has their keys. */
static bool open_values(struct object_reader *reader, const struct object_class *class,
			uintptr_t values, struct object_entries *out, uintptr_t *values_out)
{
	uint64_t keys;

	*values_out = values;
	return get(reader, class->address + layout_of(reader)->type_keys, &keys) &&
	       open_keys(reader, keys, out);
}

/* From 3.13 on, the values are in the object until it is given another dict. */
static bool open_embedded(struct object_reader *reader, const struct object_class *class,
			  uintptr_t object, struct object_entries *out, uintptr_t *values_out)
{
	uintptr_t values = object + class->instance_bytes;
	uint64_t head;

	if (!(class->flags & FLAG_EMBEDS_VALUES) || !copy(&head, values, sizeof(head)) ||
	    !(head & VALUES_VALID_MASK))
		return false;
	note(reader, values, VALUES_VALID_MASK, head);
	return open_values(reader, class, values, out, values_out);
}

/* Opens the attributes of an instance, in any of the places of enum python_dict_place. */
static bool open_attributes(struct object_reader *reader, uintptr_t object,
			    struct object_entries *out, uintptr_t *values_out)
{
	const struct python_layout *layout = layout_of(reader);
	uint64_t before[WORDS_BEFORE], values, dict;
	uintptr_t at = object - sizeof(before);
	struct object_class class;

	if (!class_of(reader, object, &class))
		return false;
	if (layout->dict_place == PYTHON_DICT_AT_OFFSET || !(class.flags & FLAG_MANAGES_DICT))
		return class.dict_offset && class.dict_offset < class.instance_bytes &&
		       get(reader, object + class.dict_offset, &dict) && dict &&
		       open_dict(reader, dict, out, values_out);
	if (!copy(before, at, sizeof(before)))
		return false;
	values = before[0];
	dict = before[1];
	note(reader, at + 8, UINT64_MAX, dict);
	if (layout->dict_place == PYTHON_DICT_AND_VALUES) {
		note(reader, at, UINT64_MAX, values);
		if (values)
			return open_values(reader, &class, values, out, values_out);
	} else if (layout->dict_place == PYTHON_DICT_OR_VALUES && dict % 2) {
		return open_values(reader, &class, dict + 1, out, values_out);
	} else if (layout->dict_place == PYTHON_DICT_AND_EMBEDDED && !dict) {
		return open_embedded(reader, &class, object, out, values_out);
	}
	return dict && open_dict(reader, dict, out, values_out);
}

bool object_next_entry(struct object_reader *reader, struct object_entries *entries,
		       struct object_entry *out)
{
	const uint32_t at_once = (uint32_t)sizeof(entries->copied) / entries->entry_bytes;

	(void)reader;
	while (entries->next < entries->count) {
		uint32_t i = entries->next++;
		const uint64_t *words;

		if (i >= entries->copied_first + entries->copied_count) {
			entries->copied_first = i;
			entries->copied_count =
				entries->count - i < at_once ? entries->count - i : at_once;
			if (!copy(entries->copied, entries->first + i * entries->entry_bytes,
				  entries->copied_count * entries->entry_bytes))
				return false;
		}
		words = entries->copied +
			((i - entries->copied_first) * entries->entry_bytes + entries->key_at) / 8;
		*out = (struct object_entry){.at = entries->first + i * entries->entry_bytes +
						   entries->key_at,
					     .key = words[0],
					     .value = words[1]};
		if (out->key)
			return true;
	}
	return false;
}

void object_note_entry(struct object_reader *reader, const struct object_entry *entry)
{
	note(reader, entry->at, UINT64_MAX, entry->key);
	note(reader, entry->at + 8, UINT64_MAX, entry->value);
}

static bool is_modules_name(struct object_reader *reader, uintptr_t key)
{
	const bool notes = reader->notes;
	char text[32];
	size_t bytes;
	bool is_equal;

	reader->notes = false; /* the key's address is an input, and this name is never freed */
	is_equal =
		object_text(reader, key, text, sizeof(text), &bytes) && !strcmp(text, MODULES_NAME);
	reader->notes = notes;
	return is_equal;
}

/*
 * Finds the entry of `_modules`. Interned strings are the same object, so most often only one text
 * is compared in a walk.
 */
static bool find_modules(struct object_reader *reader, struct object_entries *entries,
			 struct object_entry *out)
{
	static _Atomic(uintptr_t) known;
	const uintptr_t likely = atomic_load_explicit(&known, memory_order_relaxed);

	for (int any_key = 0; any_key < 2; any_key++) {
		entries->next = 0;
		while (object_next_entry(reader, entries, out)) {
			if (out->key == reader->modules_name)
				return true;
			if (!any_key && out->key != likely)
				continue;
			if (!is_modules_name(reader, out->key))
				continue;
			reader->modules_name = out->key;
			atomic_store_explicit(&known, out->key, memory_order_relaxed);
			return true;
		}
	}
	return false;
}

bool object_open_children(struct object_reader *reader, uintptr_t module,
			  struct object_entries *out)
{
	uintptr_t values = 0, no_values = 0;
	struct object_entry entry;

	if (!open_attributes(reader, module, out, &values) || !find_modules(reader, out, &entry))
		return false;
	note(reader, entry.at, UINT64_MAX, entry.key);
	entry.at += 8;
	if (values)
		entry.at = values + layout_of(reader)->values_start +
			   (out->next - 1) * sizeof(uint64_t);
	return get(reader, entry.at, &entry.value) &&
	       open_dict(reader, entry.value, out, &no_values) && !no_values;
}

/* Copies the characters of a string, each of which has one to four bytes. */
static bool copy_characters(const struct python_layout *layout, uintptr_t object, uint64_t length,
			    uint32_t state, char *out, size_t out_bytes, size_t *bytes_out)
{
	uint32_t kind = state & 7, is_compact = state >> 3 & 1, is_ascii = state >> 4 & 1;
	uint8_t text[4 * CHARACTERS_MAX];
	size_t used = 0;

	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || length > CHARACTERS_MAX ||
	    !read_memory(text,
			 object + (is_ascii ? layout->str_ascii_bytes : layout->str_compact_bytes),
			 length * kind))
		return false;
	for (uint64_t i = 0; i < length; i++) {
		uint32_t c = 0;

		if (out_bytes - used < 5)
			return false;
		memcpy(&c, text + i * kind, kind);
		used += python_put_character((uint8_t *)out + used, c);
	}
	out[used] = '\0';
	*bytes_out = used;
	return true;
}

bool object_text(struct object_reader *reader, uintptr_t object, char *out, size_t out_bytes,
		 size_t *bytes_out)
{
	const struct python_layout *layout = layout_of(reader);
	const uint32_t hash_at = layout->str_length + HASH_BEHIND_LENGTH;
	uint64_t head[STR_HEAD_BYTES / 8];
	struct object_class class;

	if (!copy(head, object, STR_HEAD_BYTES) ||
	    !read_class(reader, head[layout->object_type / 8], &class) ||
	    !(class.flags & FLAG_OF_STR) || head[hash_at / 8] == NO_HASH)
		return false;
	note(reader, object + hash_at, UINT64_MAX, head[hash_at / 8]);
	return copy_characters(
		layout, object, head[layout->str_length / 8],
		(uint32_t)(head[layout->str_state / 8] >> layout->str_state % 8 * 8) >>
			layout->str_kind_bit,
		out, out_bytes, bytes_out);
}

/* Makes inputs of a C string's words. */
static void note_c_string(struct object_reader *reader, uintptr_t text, size_t bytes)
{
	for (uintptr_t at = text & ~(uintptr_t)7; at < text + bytes; at += 8) {
		uint64_t mask = UINT64_MAX, word;

		if (at < text)
			mask <<= (text - at) * 8;
		if (at + 8 > text + bytes)
			mask &= UINT64_MAX >> (at + 8 - text - bytes) * 8;
		if (copy(&word, at, sizeof(word)))
			note(reader, at, mask, word);
	}
}

bool object_class_name(struct object_reader *reader, uintptr_t object, char *out, size_t out_bytes)
{
	struct object_class class;
	size_t bytes;
	char *dot;

	if (!class_of(reader, object, &class))
		return false;
	note(reader, class.address + layout_of(reader)->type_name, UINT64_MAX, class.name);
	bytes = read_memory_text(out, out_bytes, class.name);
	if (!bytes || bytes == out_bytes - 1)
		return false;
	note_c_string(reader, class.name, bytes + 1);
	dot = strrchr(out, '.');
	if (dot)
		memmove(out, dot + 1, strlen(dot));
	return out[0] != '\0';
}

bool object_inputs_are_current(const struct python_walk *walk, uint32_t first_input)
{
	const struct python_input *inputs = walk->inputs;
	uintptr_t addresses[READ_WORDS_MAX];
	uint64_t words[READ_WORDS_MAX];

	for (uint32_t i = first_input, count; i < walk->input_count; i += count) {
		count = walk->input_count - i < READ_WORDS_MAX ? walk->input_count - i
							       : READ_WORDS_MAX;
		for (uint32_t w = 0; w < count; w++)
			addresses[w] = (uintptr_t)inputs[i + w].word;
		if (!read_memory_words(words, addresses, count))
			return false;
		for (uint32_t w = 0; w < count; w++)
			if ((words[w] & inputs[i + w].mask) != inputs[i + w].value)
				return false;
	}
	return true;
}
