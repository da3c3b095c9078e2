/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules whose functions have no names where they are shown: "module+0x1f3c". Neither they nor a debug file have
 * symbols of them.
 */
#ifndef XT_MERGE_UNNAMED_MODULES_H
#define XT_MERGE_UNNAMED_MODULES_H

#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/read/model.h"

struct unnamed_module {
	char *path;	      /* clean */
	uint64_t place_count; /* different places in it that are shown so */
};

/* Of all logs. */
struct unnamed_modules {
	struct unnamed_module *list;
	size_t count;
	size_t capacity;
};

/*
 * Adds those of a log; shown: by place in the addresses, 0 for what is not shown. The module with most places stands
 * first. 0 or -ENOMEM; unnamed_modules_free() in any case.
 */
int unnamed_modules_add(struct unnamed_modules *unnamed_modules, const struct model *model,
			const struct addresses *addresses, const uint32_t *shown);
void unnamed_modules_free(struct unnamed_modules *unnamed_modules);

#endif
