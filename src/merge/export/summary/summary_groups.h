/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the process groups of a job, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_GROUPS_H
#define XT_MERGE_SUMMARY_GROUPS_H

#include "merge/base/json.h"
#include "merge/exporter.h"

/* Returns 0 or -ENOMEM. */
int summary_put_process_groups(struct sink *sink, const struct run *run);

/* Writes the member "process_groups" of "collectives". Returns 0 or -ENOMEM. */
int put_process_groups_json(struct json *json, const struct run *run);

#endif
