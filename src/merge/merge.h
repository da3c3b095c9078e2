/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From logs to outputs, log by log.
 */
#ifndef XT_MERGE_MERGE_H
#define XT_MERGE_MERGE_H

#include "merge/base/report.h"
#include "merge/options.h"
#include "merge/read/inputs.h"

/*
 * Reads all logs and writes all outputs of the options. Reports errors. An output appears only if
 * it is complete.
 */
void merge_run(const struct options *options, const struct inputs *inputs, struct report *report);

#endif
