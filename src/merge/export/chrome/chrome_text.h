/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_TEXT_H
#define XT_MERGE_CHROME_TEXT_H

#include "merge/export/chrome/chrome_state.h"

/* Escapes text for the inside of a JSON string, in allocated memory. Returns 0 or -ENOMEM. */
int chrome_json(struct text *out, const char *text, size_t length);

/* Returns a name of paths, escaped for JSON and cached. NULL if out of memory. */
const struct text *chrome_name(struct chrome *c, const struct process *process, uint32_t name);

/* Notes that an event refers to a path node, whose frame end() writes. Returns 0 or -ENOMEM. */
int chrome_use_frame(struct chrome *c, uint32_t node);

#endif
