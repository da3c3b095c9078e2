/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the interpreter's strings during a walk. Runs in the walking thread, on the cold path.
 */
#ifndef XT_INJECT_PYTHON_TEXT_H
#define XT_INJECT_PYTHON_TEXT_H

#include "inject/python/python_walk.h"

/* Which part to keep of a string that does not fit. */
enum python_keep { PYTHON_KEEP_BEGINNING, PYTHON_KEEP_END };

/*
 * Copies the string as UTF-8. Adds its hash, or else its whole text, to the inputs. False if not
 * readable; the walk is then incomplete.
 */
bool python_text(struct python_walk *walk, uintptr_t object, enum python_keep keep, bool as_input,
		 uint8_t *out, size_t out_bytes, uint16_t *bytes_out);

#endif
