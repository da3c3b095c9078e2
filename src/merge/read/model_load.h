/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the model of a log.
 */
#ifndef XT_MERGE_MODEL_LOAD_H
#define XT_MERGE_MODEL_LOAD_H

#include "merge/read/inputs.h"
#include "merge/read/model.h"

/* The kinds of chunks that a model needs, for xt_reader_next(). */
uint32_t model_row_kinds(void);

/*
 * Reads the model with a newly opened reader. Returns 0, or -EFBIG if the log exceeds its limits
 * when decompressed. On errors there is no model.
 */
int model_load(struct model **model_out, struct xt_reader *reader);

/*
 * Loads the model of a log, and opens the log again for its events. If the log is still being
 * written, both are limited to the same part. The caller frees both. If the log cannot be opened,
 * both are NULL, and the reason is reported unless report is NULL. Returns 0 or an error of
 * model_load().
 */
int model_open(const struct input *log, struct report *report, struct model **model_out,
	       struct xt_reader **reader_out);

#endif
