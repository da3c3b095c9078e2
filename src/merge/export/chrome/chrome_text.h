/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_TEXT_H
#define XT_MERGE_CHROME_TEXT_H

#include "merge/export/chrome/chrome_state.h"

/* The text as the inside of a JSON string, in memory of its own. 0 or -ENOMEM. */
int chrome_json(struct text *out, const char *text, size_t length);

/* A name of paths as the inside of a JSON string, kept for the next time. NULL if memory ran out. */
const struct text *chrome_name(struct chrome *c, const struct process *process, uint32_t name);

#endif
