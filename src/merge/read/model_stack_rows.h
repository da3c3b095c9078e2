/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows for call stacks: modules, frames and symbols.
 */
#ifndef XT_MERGE_MODEL_STACK_ROWS_H
#define XT_MERGE_MODEL_STACK_ROWS_H

#include "merge/read/model.h"

void model_load_modules(struct model *model, const struct xt_chunk *chunk);
void model_load_unloads(struct model *model, const struct xt_chunk *chunk);
void model_load_python_frames(struct model *model, const struct xt_chunk *chunk);
void model_load_stacks(struct model *model, const struct xt_chunk *chunk);
void model_load_symbols(struct model *model, const struct xt_chunk *chunk);
void model_load_sources(struct model *model, const struct xt_chunk *chunk);
void model_load_compiled(struct model *model, const struct xt_chunk *chunk);

#endif
