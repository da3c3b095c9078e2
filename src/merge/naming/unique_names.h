/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Different kernels and functions have different names, however short: where shortening leaves one name
 * to several of a run, each has behind it what tells it from the others, "name [with MulFunctor<float>]".
 */
#ifndef XT_MERGE_UNIQUE_NAMES_H
#define XT_MERGE_UNIQUE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/naming/demangle.h"
#include "merge/read/model.h"

/* Names of which no two are alike. Both lists are by name; a name + 1, or 0. */
struct name_space {
	uint32_t *shown_of; /* by the full name: what it is shown as */
	size_t shown_capacity;
	uint32_t *full_of; /* by what is shown: the full name that it stands for */
	size_t full_capacity;
};

/* Of a run: all zeros at first. A kernel may be called as the function is that launches it. */
struct unique_names {
	struct names names; /* in all their lengths: only what is shown gets to others */
	struct name_space kernels, functions;
};

/*
 * Settles what the kernels and the functions of a log are shown as, in the cache. Names of logs that were
 * read before stay as they are; among the names of one log the order does not matter. 0 or -ENOMEM.
 */
int unique_names_assign(struct unique_names *unique, struct demangle_cache *cache,
			const struct model *model, const struct addresses *addresses);
void unique_names_free(struct unique_names *unique);

#endif
