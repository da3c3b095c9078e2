/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of JSON documents that several outputs write.
 */
#include "diff/output/json_parts.h"

#include <math.h>

cJSON *json_add_object(cJSON *list)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddItemToArray(list, object);
	return object;
}

void json_add_number(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, value);
	else
		cJSON_AddNullToObject(object, name);
}

void json_add_lines(cJSON *object, const char *name, const struct problems *lines)
{
	cJSON *list = cJSON_AddArrayToObject(object, name);

	for (size_t i = 0; i < lines->count; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(lines->lines[i]));
}

void json_add_frames(cJSON *object, const char *name, const struct profile_entry *entry)
{
	cJSON *list = cJSON_AddArrayToObject(object, name);

	for (uint32_t f = 0; f < entry->frame_count; f++)
		cJSON_AddItemToArray(list, cJSON_CreateString(entry->frames[f]));
}
