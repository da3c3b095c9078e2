/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the summary about sampled host threads: what the CPU did while the GPU was idle, and
 * how well that is known.
 */
#ifndef XT_MERGE_SUMMARY_CPU_H
#define XT_MERGE_SUMMARY_CPU_H

#include "merge/base/json.h"

struct run;
struct sink;

/* Write nothing if no CPU log was read. Return 0 or -ENOMEM. */
int summary_put_cpu(struct sink *sink, const struct run *run);
int put_cpu_json(struct json *json, const struct run *run);

#endif
