/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the model of a log.
 */
#ifndef XT_MERGE_MODEL_LOAD_H
#define XT_MERGE_MODEL_LOAD_H

#include "merge/read/model.h"

/*
 * Reads the model with a newly opened reader. Returns 0, -ENOMEM, or -EFBIG if the log exceeds its
 * limits when decompressed. On errors there is no model.
 */
int model_load(struct model **model_out, struct xt_reader *reader);

#endif
