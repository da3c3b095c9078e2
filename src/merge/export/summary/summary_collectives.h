/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what ranks wait for in collectives, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_COLLECTIVES_H
#define XT_MERGE_SUMMARY_COLLECTIVES_H

#include "merge/base/json.h"

struct run;
struct sink;

/* Returns 0 or -ENOMEM. */
int summary_put_collectives(struct sink *sink, const struct run *run);

/* Writes the member "collectives" if several logs share collectives. Returns 0 or -ENOMEM. */
int put_collectives_json(struct json *json, const struct run *run);

#endif
