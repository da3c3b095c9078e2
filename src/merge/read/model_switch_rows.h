/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows that tell when the tracer switched something.
 */
#ifndef XT_MERGE_MODEL_SWITCH_ROWS_H
#define XT_MERGE_MODEL_SWITCH_ROWS_H

#include "merge/read/model.h"

void model_load_switches(struct model *model, const struct xt_chunk *chunk);
void model_load_rates(struct model *model, const struct xt_chunk *chunk);

#endif
