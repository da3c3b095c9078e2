/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortens names for flame graphs. Keeps what distinguishes a function, drops repeated types.
 */
#ifndef XT_MERGE_SHORT_NAMES_H
#define XT_MERGE_SHORT_NAMES_H

#include <stddef.h>

#define SHORT_NAME_BYTES_MAX 120

/*
 * Shortens a demangled name without parameters, in place, and returns its length. Always removes
 * anonymous namespaces. If the name is longer than SHORT_NAME_BYTES_MAX, it removes in this order
 * until the name fits:
 * 1. scopes in template arguments, and what leads to a lambda in them
 * 2. nested arguments, innermost first
 * 3. the last arguments
 * 4. the middle of the name
 *
 * "..." marks removed text.
 */
size_t name_shorten(char *text, size_t length);

/*
 * Replaces the middle of a text longer than bytes_max by "...", in place. Keeps up to tail_bytes of
 * its end, where generated names often differ. Returns the length.
 */
size_t name_cut_middle(char *text, size_t length, size_t bytes_max, size_t tail_bytes);

#endif
