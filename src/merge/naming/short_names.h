/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that fit into a flame graph: what tells a function from its neighbours stays, what only
 * repeats its types goes.
 */
#ifndef XT_MERGE_SHORT_NAMES_H
#define XT_MERGE_SHORT_NAMES_H

#include <stddef.h>

#define SHORT_NAME_BYTES_MAX 120

/*
 * Shortens a demangled name without parameters, in place; returns its length. Anonymous namespaces
 * always go. If it is then longer than SHORT_NAME_BYTES_MAX, so do, as far as needed: the scopes of
 * template arguments and the way to a lambda among them, arguments inside arguments, from the innermost on, the last arguments, the
 * middle of the name. "..." stands where something is missing.
 */
size_t name_shorten(char *text, size_t length);

/*
 * Replaces the middle of a text longer than bytes_max by "...", in place, and keeps at most tail_bytes of its end:
 * generated names often differ at their ends. Returns the length.
 */
size_t name_cut_middle(char *text, size_t length, size_t bytes_max, size_t tail_bytes);

#endif
