/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tables of a model are filled; for model.c, and events.c, which reads the rest.
 */
#ifndef XT_MERGE_MODEL_LOAD_H
#define XT_MERGE_MODEL_LOAD_H

#include "merge/read/model.h"

/* The kinds of chunks that a model is made of, for xt_reader_next(). */
uint32_t model_load_kinds(void);

/* Takes what the chunk says into the tables. 0 or -ENOMEM. */
int model_load_chunk(struct model *model, const struct xt_chunk *chunk);

/* Of these, in model_switches.c: */
int model_load_switches(struct model *model, const struct xt_chunk *chunk);
int model_load_rates(struct model *model, const struct xt_chunk *chunk);

#endif
