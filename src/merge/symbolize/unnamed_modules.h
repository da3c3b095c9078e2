/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules with functions that have no name, neither in the module nor in a debug file. They are
 * shown as "module+0x1f3c".
 */
#ifndef XT_MERGE_UNNAMED_MODULES_H
#define XT_MERGE_UNNAMED_MODULES_H

#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/read/model.h"

struct unnamed_module {
	char *path;	      /* printable, see text_clean() */
	uint64_t place_count; /* distinct unnamed addresses in it that are shown */
};

/* Modules of all logs. */
struct unnamed_modules {
	struct unnamed_module *list;
	size_t count;
	size_t capacity;
};

/*
 * Adds the modules of a log and sorts by place_count, largest first. shown: by index in the
 * addresses, 0 if hidden. Free it with unnamed_modules_free().
 */
void unnamed_modules_add(struct unnamed_modules *unnamed, const struct model *model,
			 const struct addresses *addresses, const uint32_t *shown);
void unnamed_modules_free(struct unnamed_modules *unnamed);

#endif
