/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows that tell when the tracer switched something. Both functions return 0 or -ENOMEM.
 */
#ifndef XT_MERGE_MODEL_SWITCH_ROWS_H
#define XT_MERGE_MODEL_SWITCH_ROWS_H

#include "merge/read/model.h"

int model_load_switches(struct model *model, const struct xt_chunk *chunk);
int model_load_rates(struct model *model, const struct xt_chunk *chunk);

#endif
