/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as people write them: C++ and Rust, by libiberty.
 */
#ifndef XT_MERGE_DEMANGLE_H
#define XT_MERGE_DEMANGLE_H

#include <stddef.h>

#include "merge/base/names.h"

enum demangle_style {
	DEMANGLE_SHORT, /* without parameter list and return type, bounded: see name_shorten() */
	DEMANGLE_FULL,
	DEMANGLE_PLAIN, /* without parameter list and return type, not shortened */
	DEMANGLE_STYLES
};

/* What a name of one table is in another, so that each is worked out once. */
struct demangle_cache {
	const struct names *mangled;
	enum demangle_style style; /* of what is shown, as the user wants it */
	struct names *shown;	   /* clean text: no control characters, no ';', valid UTF-8 */
	uint32_t *known[DEMANGLE_STYLES]; /* by mangled name: shown name + 1, or 0 */
	size_t capacity[DEMANGLE_STYLES];
};

void demangle_cache_free(struct demangle_cache *cache);

/* The shown name of a mangled one ("[no name]" of the empty text), or NAME_FAILED. */
uint32_t demangle(struct demangle_cache *cache, uint32_t mangled, enum demangle_style style);

/*
 * The length of a mangled name without what compilers append when they split or copy a function: it is
 * still that function. So it is in each version of a library.
 */
size_t demangle_length(const char *name, size_t length);

/* Settles what the short name of a mangled one is. 0 or -ENOMEM. */
int demangle_set_short(struct demangle_cache *cache, uint32_t mangled, uint32_t shown);

#endif
