/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_FINDINGS_H
#define XT_MERGE_SUMMARY_FINDINGS_H

struct run;
struct output;
struct json;

/*
 * Writes the findings as a text table, and as a member of the summary JSON. Returns 0 or -ENOMEM.
 */
int put_findings(struct output *out, const struct run *run);
int put_findings_json(struct json *json, const struct run *run);

#endif
