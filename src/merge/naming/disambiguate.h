/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Different functions of one name: a static function in each of two files, the entry of each of several
 * plugins. Where they stand tells them apart: the source file, or if that is not known the module, and in one module
 * the address.
 */
#ifndef XT_MERGE_DISAMBIGUATE_H
#define XT_MERGE_DISAMBIGUATE_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/read/model.h"

/* What is to be shown behind the name of a function. */
struct name_qualifier {
	uint32_t path;	  /* name in the model: of the file or module; NAME_EMPTY: nothing */
	bool has_address; /* and the place in the module */
};

/* The homes by place in the addresses, to be given back by free(). NULL if memory ran out. */
struct name_qualifier *disambiguate_functions(const struct model *model,
					      const struct addresses *addresses);

#endif
