/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths whose GPU time differs between ranks, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_SPREAD_H
#define XT_MERGE_SUMMARY_SPREAD_H

#include "merge/base/json.h"
#include "merge/exporter.h"

struct column;

/*
 * Writes a row of figures that ends with a process, a line of its code and a call path. log: index
 * in the inputs. node: in run->paths; PATH_ROOT: no path takes longer. Returns 0 or -ENOMEM.
 */
int summary_put_rank_path(struct output *out, const struct column *columns, size_t count,
			  const char *const *figures, const struct run *run, size_t log,
			  uint32_t node);

/* Returns 0 or -ENOMEM. */
int summary_put_spread(struct sink *sink, const struct run *run);

/* Writes the member "spread". Returns 0 or -ENOMEM. */
int put_spread_json(struct json *json, const struct run *run);

#endif
