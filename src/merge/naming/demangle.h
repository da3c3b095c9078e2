/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ and Rust names, with libiberty, and shortens them for flame graphs: keeps what
 * distinguishes a function, and drops repeated types.
 */
#ifndef XT_MERGE_DEMANGLE_H
#define XT_MERGE_DEMANGLE_H

#include <stddef.h>

#include "merge/base/names.h"

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

enum demangle_style {
	DEMANGLE_SHORT, /* no parameters or return type, limited length: see name_shorten() */
	DEMANGLE_FULL,
	DEMANGLE_PLAIN, /* no parameters or return type, any length */
	DEMANGLE_STYLES
};

/* Demangled names of one table of mangled names. Each is computed once. */
struct demangle_cache {
	const struct names *mangled;
	enum demangle_style style;	  /* chosen by the user */
	struct names *shown;		  /* valid UTF-8 without control characters and ';' */
	uint32_t *known[DEMANGLE_STYLES]; /* by mangled name: shown name + 1, or 0 */
	size_t capacity[DEMANGLE_STYLES];
};

void demangle_cache_free(struct demangle_cache *cache);

/*
 * Returns the shown name of a mangled name, or "[no name]" if that is empty. If memory runs out,
 * demangle() ends the process. demangle_try() returns NAME_FAILED, for long-running commands.
 */
uint32_t demangle_try(struct demangle_cache *cache, uint32_t mangled, enum demangle_style style);

static inline uint32_t demangle(struct demangle_cache *cache, uint32_t mangled,
				enum demangle_style style)
{
	uint32_t shown = demangle_try(cache, mangled, style);

	if (shown == NAME_FAILED)
		xt_out_of_memory(0);
	return shown;
}

/*
 * Returns the length of a mangled name without its symbol version and without suffixes of
 * compilers, such as ".cold". These mark parts and copies of the same function.
 */
size_t demangle_length(const char *name, size_t length);

/* Sets the short name of a mangled name. */
static inline void demangle_set_short(struct demangle_cache *cache, uint32_t mangled,
				      uint32_t shown)
{
	uint32_t **known = &cache->known[DEMANGLE_SHORT];

	xt_grow(*known, cache->capacity[DEMANGLE_SHORT], (size_t)mangled + 1);
	(*known)[mangled] = shown + 1;
}

#endif
