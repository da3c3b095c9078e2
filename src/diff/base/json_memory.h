/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets cJSON allocate as all offline code does. Otherwise members that do not fit into memory would
 * be missing in an output.
 */
#ifndef XT_DIFF_JSON_MEMORY_H
#define XT_DIFF_JSON_MEMORY_H

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/memory.h"

static inline void json_use_memory(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = xt_malloc, .free_fn = free});
}

#endif
