/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the interpreter's memory in a walk: words and bytes, which may become its inputs, and the types of
 * objects. For the python_*.c files of the walk; by the thread whose walk it is, on the cold path.
 */
#ifndef XT_INJECT_PYTHON_READ_H
#define XT_INJECT_PYTHON_READ_H

#include "inject/python/python_walk.h"

/* A member of 1, 2, 4 or 8 bytes at an address that is a multiple of its size. False if it cannot
 * be read: then the walk is not complete, as after each false below. */
bool python_look(struct python_walk *walk, uintptr_t address, unsigned bytes, bool as_input,
		 uint64_t *out);

/* What was read of a word becomes an input; so do bytes, from the beginning of a word on, of an object
 * that is known by inputs already. */
void python_note(struct python_walk *walk, uintptr_t address, uint64_t mask, uint64_t word);
bool python_note_bytes(struct python_walk *walk, uintptr_t address, size_t bytes);

/* Can all of it be read? */
bool python_can_read(struct python_walk *walk, uintptr_t address, size_t bytes);

/* Is the object, if it is one, of the type of that name? */
bool python_is_a(struct python_walk *walk, uintptr_t object, const char *type_name);

#endif
