/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions, and where debug information exists the source lines, of a log's addresses.
 *
 * Modules are resolved one after the other. Unless the module cache keeps it for other logs, an ELF
 * file is closed after its addresses are resolved. Memory therefore does not grow with the number
 * of modules.
 */
#ifndef XT_MERGE_RESOLVE_H
#define XT_MERGE_RESOLVE_H

#include <stdbool.h>

#include "merge/base/report.h"
#include "merge/read/model.h"
#include "merge/symbolize/addresses.h"
#include "merge/symbolize/module_cache.h"

/* Which addresses get names, and how much is looked up. */
struct resolve_options {
	bool drivers; /* include hidden modules: see module_is_driver() */
	bool places;  /* find inlined functions and lines */
	struct debug_search *search;
	const char *log_path;
};

/*
 * Collects the addresses of the model with addresses_collect() and names them. Reports modules
 * whose names cannot be found. Free it with addresses_free().
 */
void addresses_resolve(struct addresses *addresses, struct model *model,
		       const struct resolve_options *options, struct report *report);

#endif
