/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads objects that other threads may change or free meanwhile: instances, their dicts, strings
 * and classes. Copies memory by system calls. Never allocates. Runs in the walking thread, on the
 * cold path.
 */
#ifndef XT_INJECT_PYTHON_OBJECTS_H
#define XT_INJECT_PYTHON_OBJECTS_H

#include "inject/python/python_walk.h"

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

/* Opens the children of a module: the dict in its `_modules`. False if they cannot be read. */
bool object_open_children(struct object_reader *reader, uintptr_t module,
			  struct object_entries *out);

/* Returns the next entry that has a value, or false at the end. */
bool object_next_entry(struct object_reader *reader, struct object_entries *entries,
		       struct object_entry *out);

/* Makes inputs of an entry's key and value, if the reader notes. */
void object_note_entry(struct object_reader *reader, const struct object_entry *entry);

/* Copies a string as UTF-8. False if it is none, or does not fit. */
bool object_text(struct object_reader *reader, uintptr_t object, char *out, size_t out_bytes,
		 size_t *bytes_out);

/*
 * Copies the name of the object's class, without its module. False if it has none, or a longer one.
 */
bool object_class_name(struct object_reader *reader, uintptr_t object, char *out, size_t out_bytes);

/* Whether all inputs from this one on still have their values. */
bool object_inputs_are_current(const struct python_walk *walk, uint32_t first_input);

#endif
