/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON documents with cJSON.
 */
#ifndef XT_DIFF_JSON_READ_H
#define XT_DIFF_JSON_READ_H

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/memory.h"

/* NULL if it is not JSON. The caller calls cJSON_Delete(). */
static inline cJSON *json_parse(const char *text, size_t bytes)
{
	/* Otherwise a lack of memory would look like a damaged document. */
	cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = xt_malloc, .free_fn = free});
	return cJSON_ParseWithLength(text, bytes);
}

/* NULL if the object is NULL or has no such member. */
static inline cJSON *json_member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The same, if it is no text. */
static inline char *json_member_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(json_member(object, name));
}

#endif
