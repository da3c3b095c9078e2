/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of JSON documents that several outputs write.
 */
#ifndef XT_DIFF_JSON_H
#define XT_DIFF_JSON_H

#include "base/json.h"
#include "diff/base/level.h"
#include "diff/base/text.h"
#include "diff/load/run_profile.h"

extern const char *const json_units[]; /* by enum unit: "ns", "bytes", "count" */

/* Begins a document with its format, version and generator. */
void json_begin_document(struct json *json, const char *format, int version);

/* Arrays of strings: the lines, and the frames of an entry, outermost first. */
void json_lines(struct json *json, const char *key, const struct problems *lines);
void json_frames(struct json *json, const char *key, const struct profile_entry *entry);

#endif
