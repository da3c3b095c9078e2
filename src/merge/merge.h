/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges logs into outputs, log by log.
 */
#ifndef XT_MERGE_MERGE_H
#define XT_MERGE_MERGE_H

#include "merge/base/report.h"
#include "merge/options.h"
#include "merge/read/inputs.h"

/*
 * Reads all logs and writes the outputs that the options request. Reports errors. A file appears
 * only if it is complete.
 */
void merge_run(const struct options *options, struct inputs *inputs, struct report *report);

#endif
