/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes functions that share a mangled name, such as static functions in two files or the
 * entry points of plugins. It appends the source file. If that is unknown it appends the module,
 * and within one module also the address. The mangled name tells the linkage of a function.
 */
#ifndef XT_MERGE_DISAMBIGUATE_H
#define XT_MERGE_DISAMBIGUATE_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
