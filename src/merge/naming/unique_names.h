/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the short names of kernels and functions unique within a run. If several names have the
 * same short form, their difference is appended: "name [with MulFunctor<float>]".
 */
#ifndef XT_MERGE_UNIQUE_NAMES_H
#define XT_MERGE_UNIQUE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/naming/demangle.h"
#include "merge/read/model.h"
#include "merge/symbolize/addresses.h"

/* A set of unique names. Both arrays are indexed by name and contain a name + 1, or 0. */
struct name_space {
	uint32_t *shown_of; /* by full name: the shown name */
	size_t shown_capacity;
	uint32_t *full_of; /* by shown name: the full name */
	size_t full_capacity;
};

/*
 * State of a run, initially zeros. A kernel may share its name with the function that launches it.
 */
struct unique_names {
	struct names names; /* short, plain and full names; not used elsewhere */
	struct name_space kernels, functions;
};

/*
 * Assigns the shown names of a log's kernels and functions, in the cache. Names from earlier logs
 * stay. The order of names in a log does not matter.
 */
void unique_names_assign(struct unique_names *unique, struct demangle_cache *cache,
			 const struct model *model, const struct addresses *addresses);
void unique_names_free(struct unique_names *unique);

#endif
