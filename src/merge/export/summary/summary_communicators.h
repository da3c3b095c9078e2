/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the communicators of a job, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_COMMUNICATORS_H
#define XT_MERGE_SUMMARY_COMMUNICATORS_H

#include "merge/base/json.h"
#include "merge/exporter.h"

/* Returns 0 or -ENOMEM. */
int summary_put_communicators(struct sink *sink, const struct run *run);

/* Writes the member "communicator": the name of one. */
void put_communicator_json(struct json *json, const struct communicator *communicator);

/* Writes the member "communicators" of "collectives". Returns 0 or -ENOMEM. */
int put_communicators_json(struct json *json, const struct run *run);

#endif
