/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ and Rust names, with libiberty.
 */
#ifndef XT_MERGE_DEMANGLE_H
#define XT_MERGE_DEMANGLE_H

#include <stddef.h>

#include "merge/base/names.h"

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

	xt_grow(known, &cache->capacity[DEMANGLE_SHORT], (size_t)mangled + 1, sizeof(**known));
	(*known)[mangled] = shown + 1;
}

#endif
