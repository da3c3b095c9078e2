/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter's strings in a walk. By the thread whose walk it is, on the cold path.
 */
#ifndef XT_INJECT_PYTHON_TEXT_H
#define XT_INJECT_PYTHON_TEXT_H

#include "inject/python/python_walk.h"

/* Which part of a string is kept, if not all of it fits. */
enum python_keep { PYTHON_KEEP_BEGINNING, PYTHON_KEEP_END };

/* The string's text as UTF-8. As an input, what identifies it: its hash, or else all of it. False if it cannot be
 * read: then the walk is not complete. */
bool python_text(struct python_walk *walk, uintptr_t object, enum python_keep keep, bool as_input,
		 uint8_t *out, size_t out_bytes, uint16_t *bytes_out);

#endif
