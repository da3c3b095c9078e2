/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the stacks of a log that are in functions of MPI.
 *
 * Only names in the log count: `xtrace record` adds them at the end of the run.
 */
#ifndef XT_MERGE_HOST_STACKS_H
#define XT_MERGE_HOST_STACKS_H

#include "merge/read/model.h"

/* Fills in model->host_calls. Call it before the model's frames are freed. Returns 0 or -ENOMEM. */
int host_stacks_find(struct model *model);

/* Returns the call that a stack is in. Stacks of other threads that were joined do not count. */
struct host_call host_call_at(const struct model *model, uint32_t stack);

#endif
