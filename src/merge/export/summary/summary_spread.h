/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths whose GPU time differs between ranks, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_SPREAD_H
#define XT_MERGE_SUMMARY_SPREAD_H

#include "merge/base/json.h"
#include "merge/exporter.h"

/* Returns 0 or -ENOMEM. */
int summary_put_spread(struct sink *sink, const struct run *run);

/* Writes the member "spread". Returns 0 or -ENOMEM. */
int put_spread_json(struct json *json, const struct run *run);

#endif
