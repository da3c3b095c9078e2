/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary as JSON.
 */
#ifndef XT_MERGE_SUMMARY_JSON_H
#define XT_MERGE_SUMMARY_JSON_H

#include "base/json.h"

struct run;

#define SUMMARY_LINES_DEPTH 3 /* nesting depth down to which each value has its own line */
#define SUMMARY_VERSION	    2 /* docs/SUMMARY.md lists the changes that keep it */

/*
 * Writes the document, as the value of key unless that is NULL. with_paths includes the tables made
 * of call paths and NVTX ranges.
 */
void summary_json_put(struct json *json, const char *key, const struct run *run, bool with_paths);

/* Whether the ranks share collectives that can be compared. */
bool summary_has_collectives(const struct run *run);

#endif
