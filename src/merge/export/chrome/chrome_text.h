/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and arguments of a Chrome trace as JSON.
 */
#ifndef XT_MERGE_CHROME_TEXT_H
#define XT_MERGE_CHROME_TEXT_H

#include "merge/export/chrome/chrome_state.h"

/* Escapes text for the inside of a JSON string. The caller frees the result. */
struct text chrome_json(const char *text, size_t length);

/* Returns a name of paths, escaped and cached. */
const struct text *chrome_add_name(struct chrome *c, uint32_t name);
static inline const struct text *chrome_name(struct chrome *c, uint32_t name)
{
	return name < c->name_capacity && c->names[name].data ? &c->names[name]
							      : chrome_add_name(c, name);
}

/* Formats an argument as `"key":value,`. The text is valid until the next call. */
const struct text *chrome_arg(struct chrome *c, const struct track_arg *arg);

/* The same for several. The caller frees the text, which begins with prefix. */
struct text chrome_args(struct chrome *c, const char *prefix, const struct track_arg *args,
			size_t count);

/* Sets the pieces of the state. */
void chrome_make_pieces(struct chrome *c);

#endif
