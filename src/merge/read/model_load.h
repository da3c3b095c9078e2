/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the tables of a model from chunks. For model.c, and for events.c, which reads the rest.
 */
#ifndef XT_MERGE_MODEL_LOAD_H
#define XT_MERGE_MODEL_LOAD_H

#include "merge/read/model.h"

/* The kinds of chunks that a model needs, for xt_reader_next(). */
uint32_t model_load_kinds(void);

/* Adds the rows of a chunk to the tables. Returns 0 or -ENOMEM. */
int model_load_chunk(struct model *model, const struct xt_chunk *chunk);

/* In model_switches.c. */
int model_load_switches(struct model *model, const struct xt_chunk *chunk);
int model_load_rates(struct model *model, const struct xt_chunk *chunk);

#endif
