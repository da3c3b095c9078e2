/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_JSON_TABLES_H
#define XT_MERGE_SUMMARY_JSON_TABLES_H

#include "merge/base/json.h"

struct paths;
struct run;

#define SUMMARY_LINES_DEPTH 3 /* nesting depth down to which each value has its own line */

/* Writes the frames of a path as an array, outermost first. Returns 0 or -ENOMEM. */
int summary_json_path(struct json *json, const char *key, const struct paths *paths, uint32_t node);

/* Tables of the summary JSON. Functions that return int return 0 or -ENOMEM. */
int summary_json_weights(struct json *json, const struct run *run);
void summary_json_trust(struct json *json, const struct run *run);

#endif
