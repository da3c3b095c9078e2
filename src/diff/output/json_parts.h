/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of JSON documents that several outputs write.
 */
#ifndef XT_DIFF_JSON_PARTS_H
#define XT_DIFF_JSON_PARTS_H

#include <cjson/cJSON.h>

#include "diff/base/level.h"
#include "diff/base/text.h"
#include "diff/load/run_profile.h"

extern const char *const json_units[]; /* by enum unit: "ns", "bytes", "count" */

/* Appends an empty object to a list. */
cJSON *json_add_object(cJSON *list);

/* Adds a member. Infinite and unknown numbers become null. */
void json_add_number(cJSON *object, const char *name, double value);

/* Adds a member: the lines as an array of strings. */
void json_add_lines(cJSON *object, const char *name, const struct problems *lines);

/* Adds a member: the frames of an entry, outermost first. */
void json_add_frames(cJSON *object, const char *name, const struct profile_entry *entry);

#endif
