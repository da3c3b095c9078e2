/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the interpreter's memory during a walk: words and bytes, which may become inputs, types of
 * objects, strings. Runs in the walking thread, on the cold path.
 */
#ifndef XT_INJECT_PYTHON_READ_H
#define XT_INJECT_PYTHON_READ_H

#include "inject/python/python_walk.h"

/* Offsets and values that are the same in all versions. */
#define HASH_BEHIND_LENGTH 8
#define NO_HASH		   UINT64_MAX
#define FLAG_OF_STR	   (UINT64_C(1) << 28) /* of a type object */

/*
 * Reads a naturally aligned member of 1, 2, 4 or 8 bytes. False if not readable; the walk is then
 * incomplete, as after each false below.
 */
bool python_read(struct python_walk *walk, uintptr_t address, unsigned bytes, bool as_input,
		 uint64_t *out);

/*
 * Adds an input: a word under a mask, or bytes from the start of a word on. The bytes must belong
 * to an object that earlier inputs identify.
 */
void python_add_input(struct python_walk *walk, uintptr_t address, uint64_t mask, uint64_t word);
bool python_add_input_bytes(struct python_walk *walk, uintptr_t address, size_t bytes);

/* Whether all bytes can be read. */
bool python_can_read(struct python_walk *walk, uintptr_t address, size_t bytes);

/* Whether the object has the type of this name. */
bool python_is_a(struct python_walk *walk, uintptr_t object, const char *type_name);

/* The same for an object that another thread may free meanwhile: copies memory. */
bool python_has_type(const struct python_layout *layout, uintptr_t object, const char *type_name);

bool python_ends_with(const void *text, size_t bytes, const char *end);

/* Which part to keep of a string that does not fit. */
enum python_keep { PYTHON_KEEP_BEGINNING, PYTHON_KEEP_END };

/*
 * Copies the string as UTF-8. Adds its hash, or else its whole text, to the inputs. False if not
 * readable; the walk is then incomplete.
 */
bool python_text(struct python_walk *walk, uintptr_t object, enum python_keep keep, bool as_input,
		 uint8_t *out, size_t out_bytes, uint16_t *bytes_out);

#endif
