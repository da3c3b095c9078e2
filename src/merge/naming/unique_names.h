/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes functions that share a mangled name, such as static functions in two files or the
 * entry points of plugins. It appends the source file. If that is unknown it appends the module,
 * and within one module also the address. The mangled name tells the linkage of a function.
 *
 * Makes the short names of kernels and functions unique within a run. If several names have the
 * same short form, their difference is appended: "name [with MulFunctor<float>]".
 */
#ifndef XT_MERGE_UNIQUE_NAMES_H
#define XT_MERGE_UNIQUE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/naming/demangle.h"
#include "merge/read/model.h"
#include "merge/symbolize/addresses.h"

/*
 * Returns whether all functions of this name are the same function, in any number of modules.
 * Returns false for C names, which do not show their linkage. Also returns false if the function or
 * a part of its name is local to one file:
 * - static
 * - in an anonymous namespace or an anonymous class
 * - in a C function
 */
bool mangled_linkage_is_global(const char *mangled);

/* Shown after the name of a function: "name [path]". */
struct name_qualifier {
	uint32_t path;	  /* file or module, as name in the model; NAME_EMPTY: none */
	bool has_address; /* append the function's address in the module */
};

/* Returns the qualifiers by index in the addresses. The caller frees them. */
struct name_qualifier *disambiguate_functions(const struct model *model,
					      const struct addresses *addresses);

/* A set of unique names. Both arrays are indexed by name and contain a name + 1, or 0. */
struct name_space {
	BY_ID(uint32_t) shown_of; /* by full name: the shown name */
	BY_ID(uint32_t) full_of;  /* by shown name: the full name */
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
