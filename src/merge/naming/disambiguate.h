/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes functions that share a mangled name, such as static functions in two files or the
 * entry points of plugins. It appends the source file. If that is unknown it appends the module,
 * and within one module also the address.
 */
#ifndef XT_MERGE_DISAMBIGUATE_H
#define XT_MERGE_DISAMBIGUATE_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/read/model.h"

/* Shown after the name of a function: "name [path]". */
struct name_qualifier {
	uint32_t path;	  /* file or module, as name in the model; NAME_EMPTY: none */
	bool has_address; /* append the function's address in the module */
};

/* Returns the qualifiers by index in the addresses. The caller frees them. */
struct name_qualifier *disambiguate_functions(const struct model *model,
					      const struct addresses *addresses);

#endif
