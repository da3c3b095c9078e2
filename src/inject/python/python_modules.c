/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the names of modules. Runs in the program's threads on the cold path.
 *
 * The first part reads objects that other threads may change or free meanwhile: instances, their
 * dicts, strings and classes. It copies memory by system calls and never allocates.
 */
#include "inject/python/python_modules.h"

#include <stdio.h>
#include <string.h>

#include "inject/memory/memory.h"
#include "inject/python/python_read.h"
#include "inject/runtime/hot_state.h"
#include "python/python_layout.h"

#define OBJECT_CLASSES_KEPT 8
#define OBJECT_ENTRY_WORDS  96 /* entries of a dict that are copied at once */

/* The part of a class that tells how to read its instances. */
struct object_class {
	uint64_t address; /* 0: none */
	uint64_t name;	  /* address of a C string */
	uint64_t flags;
	uint64_t instance_bytes;
	uint64_t dict_offset;
};

struct object_reader {
	struct python_walk *walk;
	bool notes;		/* make an input of each word that the result depends on */
	uintptr_t modules_name; /* the string "_modules", once found; 0 equals no key */
	struct object_class classes[OBJECT_CLASSES_KEPT];
};

/* Entries of a dict in order of insertion, and the next one to return. */
struct object_entries {
	uintptr_t first;
	uint32_t count, next;
	uint32_t entry_bytes;
	uint32_t key_at; /* offset of the key; the value follows */
	uint32_t copied_first, copied_count;
	uint64_t copied[OBJECT_ENTRY_WORDS];
};

struct object_entry {
	uintptr_t at; /* address of the key, followed by the value */
	uint64_t key, value;
};

/*
 * Offsets that differ between versions are in struct python_layout. These are the same in all of
 * them, for builds with a global lock.
 */
#define CLASS_BYTES	  296 /* to the end of the offset of the dict */
#define CLASS_INSTANCE	  32
#define CLASS_FLAGS	  168
#define CLASS_DICT_OFFSET 288
#define DICT_KEYS	  32
#define DICT_VALUES	  40
#define DICT_BYTES	  48
#define KEYS_SIZE	  8 /* to 3.10 */
#define KEYS_SHAPE	  8 /* later: logarithm of the size, of the index bytes, kind */
#define KEYS_SHAPE_MASK	  UINT64_C(0xffffff)
#define KEYS_BYTES	  40
#define KEYS_LOG_MAX	  30
#define KIND_GENERAL	  0
#define KIND_LAST	  2
#define VALUES_VALID	  3 /* from 3.13: a byte of the values in an object */
#define VALUES_VALID_MASK (UINT64_C(0xff) << VALUES_VALID * 8)
#define WORDS_BEFORE	  4 /* words before an object: values, dict, garbage collection */
#define STR_HEAD_BYTES	  40
#define CHARACTERS_MAX	  512
#define MODULES_NAME	  "_modules"

#define FLAG_EMBEDS_VALUES (UINT64_C(1) << 2) /* from 3.13 */
#define FLAG_MANAGES_DICT  (UINT64_C(1) << 4) /* from 3.11 */
#define FLAG_IS_READY	   (UINT64_C(1) << 12)
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

/* Returns the next entry that has a value, or false at the end. */
static bool object_next_entry(struct object_reader *reader, struct object_entries *entries,
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

/* Makes inputs of an entry's key and value, if the reader notes. */
static void object_note_entry(struct object_reader *reader, const struct object_entry *entry)
{
	note(reader, entry->at, UINT64_MAX, entry->key);
	note(reader, entry->at + 8, UINT64_MAX, entry->value);
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

/* Copies a string as UTF-8. False if it is none, or does not fit. */
static bool object_text(struct object_reader *reader, uintptr_t object, char *out, size_t out_bytes,
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

/* Opens the children of a module: the dict in its `_modules`. False if they cannot be read. */
static bool object_open_children(struct object_reader *reader, uintptr_t module,
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

/*
 * Copies the name of the object's class, without its module. False if it has none, or a longer one.
 */
static bool object_class_name(struct object_reader *reader, uintptr_t object, char *out,
			      size_t out_bytes)
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

/* Whether all inputs from this one on still have their values. */
static bool object_inputs_are_current(const struct python_walk *walk, uint32_t first_input)
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

#define FILE_END       "/torch/nn/modules/module.py"
#define MARK	       "[module] "
#define UNKNOWN	       "<unknown>"
#define CUT	       "<...>" /* replaces outer parts that are too long or were not walked */
#define SEARCHED_MAX   512     /* modules opened, or kept to be opened, in one search */
#define CHILDREN_MAX   65536   /* entries compared in one search */
#define DEPTH_MAX      8
#define TRIES	       2 /* another thread may change a module while it is read */
#define PATH_BYTES_MAX (PYTHON_NAME_BYTES_MAX - (sizeof(MARK) - 1))
#define NAME_BYTES     256

HOT_STATE _Atomic(uintptr_t) python_module_codes[PYTHON_MODULE_CODES_MAX];

/* A module that a search has come to. */
struct searched {
	uintptr_t module;
	uint32_t parent; /* index; the first one has none */
	uint32_t depth;
};

struct naming {
	struct object_reader reader;
	uintptr_t module;		  /* the one named last */
	char path[PYTHON_NAME_BYTES_MAX]; /* its path */
	bool is_outermost;
	bool is_certain; /* does not depend on objects that are no inputs */
	struct searched searched[SEARCHED_MAX];
	uint32_t searched_count;
	struct object_entries entries;
};

static bool is_text(const uint8_t *text, size_t bytes, const char *wanted)
{
	return bytes == strlen(wanted) && !memcmp(text, wanted, bytes);
}

bool python_modules_is_call(const struct python_walk *walk, const struct xt_python_code *code)
{
	/* Names are qualified from 3.11 on. */
	static const char *const names[] = {"Module._wrapped_call_impl", "_wrapped_call_impl",
					    "Module._call_impl", "_call_impl"};

	if (!python_modules_wanted || !walk->python->layout.frame_locals ||
	    !python_ends_with(code->text + code->name_bytes, code->file_bytes, FILE_END))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_text(code->text, code->name_bytes, names[i]))
			return true;
	return false;
}

/* Adds a code object to the list. False if the list is full. */
static bool list_code(uintptr_t code)
{
	for (uint32_t i = 0; i < PYTHON_MODULE_CODES_MAX; i++) {
		uintptr_t listed = 0;

		if (atomic_compare_exchange_strong(&python_module_codes[i], &listed, code) ||
		    listed == code)
			return true;
	}
	return false;
}

void python_modules_note(struct python_walk *walk, uintptr_t frame, uintptr_t code)
{
	struct python_called self = {.step = walk->step_count};
	uint64_t object;

	if (walk->called_count == PYTHON_CALLED_MAX) {
		walk->inputs_complete = false; /* without its module, the key is incomplete */
		walk->called_is_cut = true;
		return;
	}
	if (!python_read(walk, frame + walk->python->layout.frame_locals, 8, false, &object))
		return;
	object &= ~UINT64_C(3);
	/* A function whose inner functions use its argument keeps it in a cell. */
	self.is_in_cell = object && python_has_type(&walk->python->layout, object, "cell");
	if (self.is_in_cell && !python_read(walk, object + PYTHON_CELL_CONTENTS, 8, false, &object))
		return;
	/* To 3.10, a cell is elsewhere; the caller's frame has the module. */
	if (!object || (!self.is_in_cell && !list_code(code)))
		return;
	self.object = object;
	walk->called_frames[walk->called_count] = (uint16_t)walk->frame_count;
	walk->called[walk->called_count++] = self;
}

/* Searches for a module below another, level by level. Returns its index, or UINT32_MAX. */
static uint32_t search(struct naming *naming, uintptr_t above, uintptr_t wanted)
{
	struct searched *list = naming->searched;
	uint32_t compared = 0;
	struct object_entry entry;

	naming->reader.notes = false;
	list[0] = (struct searched){.module = above};
	naming->searched_count = 1;
	for (uint32_t i = 0; i < naming->searched_count; i++) {
		if (!object_open_children(&naming->reader, list[i].module, &naming->entries))
			continue;
		while (compared++ < CHILDREN_MAX &&
		       object_next_entry(&naming->reader, &naming->entries, &entry)) {
			uint32_t last = naming->searched_count;
			bool is_wanted = entry.value == wanted;

			if (!entry.value || (!is_wanted && (list[i].depth + 1 == DEPTH_MAX ||
							    last == SEARCHED_MAX)))
				continue;
			last -= last == SEARCHED_MAX; /* no more than this one is needed */
			if (is_wanted && last == i)
				return UINT32_MAX;
			list[last] = (struct searched){
				.module = entry.value, .parent = i, .depth = list[i].depth + 1};
			naming->searched_count = last + 1;
			if (is_wanted)
				return last;
		}
	}
	return UINT32_MAX;
}

/* Appends to a path, separated by a dot. Cuts its beginning if it gets too long. */
static void modules_append(char *path, const char *part)
{
	size_t used = strlen(path), bytes = strlen(part);

	if (used + bytes + 2 > PATH_BYTES_MAX) {
		strcpy(path, CUT);
		used = strlen(path);
	}
	snprintf(path + used, PATH_BYTES_MAX - used, "%s%s", used ? "." : "", part);
}

/* Appends the name of a child, and makes inputs of all that was read to find it. */
static bool append_child(struct naming *naming, uintptr_t parent, uintptr_t child, char *path)
{
	struct object_entry entry;
	char name[NAME_BYTES];
	size_t bytes;

	naming->reader.notes = true;
	if (!object_open_children(&naming->reader, parent, &naming->entries))
		return false;
	do {
		if (!object_next_entry(&naming->reader, &naming->entries, &entry))
			return false;
	} while (entry.value != child);
	object_note_entry(&naming->reader, &entry);
	if (!object_text(&naming->reader, entry.key, name, sizeof(name), &bytes))
		return false;
	modules_append(path, name);
	return true;
}

/* Appends the names from the first module of a search to the one found. */
static bool append_names(struct naming *naming, uint32_t found, char *path)
{
	uint32_t chain[DEPTH_MAX + 1], count = 0;

	for (uint32_t at = found; at; at = naming->searched[at].parent)
		chain[count++] = at;
	for (uint32_t i = count; i-- > 0;) {
		const struct searched *at = &naming->searched[chain[i]];

		if (!append_child(naming, naming->searched[at->parent].module, at->module, path))
			return false;
	}
	return true;
}

/* Appends the path below the module named last. False if the module is not there. */
static bool name_below(struct naming *naming, uintptr_t module, char *path)
{
	struct python_walk *walk = naming->reader.walk;
	const uint32_t inputs = walk->input_count;
	char tried[PYTHON_NAME_BYTES_MAX];

	for (int i = 0; i < TRIES; i++) {
		uint32_t found = search(naming, naming->module, module);

		strcpy(tried, path);
		if (found != UINT32_MAX && append_names(naming, found, tried) &&
		    object_inputs_are_current(walk, inputs)) {
			strcpy(path, tried);
			return true;
		}
		walk->input_count = inputs;
	}
	return false;
}

/* The name of a class: an outermost module has no other, nor has one that is no child. */
static void name_class(struct naming *naming, uintptr_t module, char *name, size_t name_bytes)
{
	const uint32_t inputs = naming->reader.walk->input_count;

	naming->reader.notes = true;
	if (object_class_name(&naming->reader, module, name, name_bytes) &&
	    object_inputs_are_current(naming->reader.walk, inputs))
		return;
	naming->reader.walk->input_count = inputs;
	naming->is_certain = false;
	snprintf(name, name_bytes, "%s", UNKNOWN);
}

/* Names the next module inside. Returns what to show. */
static const char *name_module(struct naming *naming, uintptr_t module, char *shown)
{
	const struct python_walk *walk = naming->reader.walk;
	char class[NAME_BYTES], quoted[NAME_BYTES + 2];

	if (naming->module && name_below(naming, module, naming->path)) {
		naming->is_outermost = false;
		return naming->path;
	}
	name_class(naming, module, class, sizeof(class));
	snprintf(quoted, sizeof(quoted), class[0] == '<' ? "%s" : "<%s>", class);
	if (!naming->module && !walk->called_is_cut && !(walk->flags & XT_STACK_PYTHON_TRUNCATED)) {
		naming->is_outermost = true;
		return strcpy(shown, class);
	}
	if (!naming->module)
		strcpy(naming->path, CUT);
	else if (naming->is_outermost)
		naming->path[0] = '\0';
	naming->is_certain = naming->is_outermost = false;
	modules_append(naming->path, quoted);
	return naming->path;
}

/* Appends a code object for a path. Returns its index, or UINT32_MAX if there is no room. */
static uint32_t add_code(struct python_walk *walk, const char *path)
{
	struct xt_python_code *part = (void *)(walk->code_part + walk->code_part_bytes);
	size_t mark_bytes = strlen(MARK), path_bytes = strlen(path), bytes;

	bytes = (sizeof(*part) + mark_bytes + path_bytes + 7) & ~(size_t)7;
	if (walk->code_count == XT_PYTHON_CODES_MAX ||
	    bytes > PYTHON_CODE_PART_BYTES - walk->code_part_bytes)
		return UINT32_MAX;
	memset(part, 0, bytes);
	part->name_bytes = (uint16_t)(mark_bytes + path_bytes);
	memcpy(part->text, MARK, mark_bytes);
	memcpy(part->text + mark_bytes, path, path_bytes);
	walk->code_part_bytes += (uint32_t)bytes;
	return walk->code_count++;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * Inserts a frame outside each frame that calls a named module. codes: code of its path, by index
 * in the walk's modules; UINT32_MAX: none.
 */
static void insert_frames(struct python_walk *walk, const uint32_t *codes, uint32_t added)
{
	uint32_t to = walk->frame_count + added, module = walk->called_count;

	if (to > XT_PYTHON_FRAMES_MAX)
		return;
	walk->frame_count = to;
	for (uint32_t from = to - added; from-- > 0;) {
		const struct xt_python_frame frame = walk->frames[from];

		if (module && walk->called_frames[module - 1] == from) {
			module--;
			if (codes[module] != UINT32_MAX)
				walk->frames[--to] = (struct xt_python_frame){
					.code = (uint16_t)codes[module], .place = frame.place};
		}
		walk->frames[--to] = frame;
	}
}

static void name_all(struct naming *naming)
{
	struct python_walk *walk = naming->reader.walk;
	char shown[NAME_BYTES];
	uint32_t codes[PYTHON_CALLED_MAX], added = 0;

	for (uint32_t i = walk->called_count; i-- > 0;) {
		uintptr_t module = walk->called[i].object;
		const char *path;

		codes[i] = UINT32_MAX;
		walk->called[i].left = (uint16_t)(walk->called_count - i);
		if (module == naming->module) /* _call_impl() inside _wrapped_call_impl() */
			continue;
		naming->is_certain = true;
		path = name_module(naming, module, shown);
		naming->module = module;
		codes[i] = add_code(walk, path);
		added += codes[i] != UINT32_MAX;
		if (naming->is_certain)
			walk->hash = hash_text(walk->hash, path);
	}
	insert_frames(walk, codes, added);
}

void python_modules_add(struct python_walk *walk)
{
	struct naming naming;

	naming.reader = (struct object_reader){.walk = walk};
	naming.module = 0;
	naming.path[0] = '\0';
	naming.is_outermost = false;
	name_all(&naming);
}

#define FREE_NS	    UINT64_C(2000000000) /* for the first step of a large model */
#define ONE_OF_TIME 50			 /* this part of the time since the first walk */

static _Atomic(bool) gave_up;

void python_modules_spend(uint64_t now_ns, uint64_t ns)
{
	static _Atomic(uint64_t) first_ns, spent_ns;
	uint64_t first = 0, spent = atomic_fetch_add(&spent_ns, ns) + ns;

	if (atomic_compare_exchange_strong(&first_ns, &first, now_ns))
		first = now_ns;
	if (python_modules_limited && spent > FREE_NS + (now_ns - first) / ONE_OF_TIME &&
	    atomic_exchange(&python_modules_wanted, false))
		atomic_store(&gave_up, true);
}

bool python_modules_gave_up(void)
{
	return atomic_exchange(&gave_up, false);
}
