/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_MEMORY_H
#define XT_MERGE_SUMMARY_MEMORY_H

#include "merge/exporter.h"

/* Writes the memory tables. Returns 0 or -ENOMEM. */
int summary_put_memory(struct sink *sink, const struct run *run);

#endif
