/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the compilations of XLA in a log, and the work that its autotuner does for them. */
#ifndef XT_MERGE_XLA_JOIN_H
#define XT_MERGE_XLA_JOIN_H

#include "merge/read/model.h"

/*
 * Fills the model's table of autotuning, and adds nodes to its ranges. Call it after
 * ranges_index(), once.
 */
void xla_join(struct model *model);

#endif
