/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows of chunks to a model's tables.
 */
#ifndef XT_MERGE_MODEL_ROWS_H
#define XT_MERGE_MODEL_ROWS_H

#include "merge/read/model.h"

/* The kinds of chunks that a model needs, for xt_reader_next(). */
uint32_t model_row_kinds(void);

/* Adds the rows of a chunk to the tables. */
void model_add_rows(struct model *model, const struct xt_chunk *chunk);

#endif
