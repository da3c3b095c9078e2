/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the headline as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_HEADLINE_H
#define XT_MERGE_SUMMARY_HEADLINE_H

#include "merge/base/json.h"
#include "merge/exporter.h"

/* Both return 0 or -ENOMEM. */
int put_headline(struct output *out, const struct run *run);
int put_headline_json(struct json *json, const struct run *run);

#endif
