/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of JSON documents that several outputs write.
 */
#ifndef XT_DIFF_JSON_H
#define XT_DIFF_JSON_H

#include "base/json.h"
#include "diff/base/level.h"
#include "diff/base/text.h"

extern const char *const json_units[]; /* by enum unit: "ns", "bytes", "count" */

/* Begins a document with its format, version and generator. */
void json_begin_document(struct json *json, const char *format, int version);

/* The lines, as an array of strings. */
void json_lines(struct json *json, const char *key, const struct problems *lines);

#endif
