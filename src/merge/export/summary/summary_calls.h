/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_CALLS_H
#define XT_MERGE_SUMMARY_CALLS_H

#include "merge/exporter.h"
#include "merge/sums/calls.h"

/* The state of the text summary's sink. */
/* Tables of API calls and of failed calls. Returns 0 or -ENOMEM. */
int summary_put_calls(struct sink *sink, const struct run *run);

/* Table of NVTX ranges. Returns 0 or -ENOMEM. */
int summary_put_ranges(struct sink *sink, const struct run *run);

/* Table of copies and memsets. */
void summary_put_transfers(struct sink *sink, const struct run *run);

#endif
