/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_PATH_H
#define XT_MERGE_SUMMARY_PATH_H

#include "merge/base/output.h"
#include "merge/naming/paths.h"

/*
 * Writes the frames of a call path that fit in the line. The user's own frames and the innermost
 * frames come first. Leaves reserved columns of a terminal's line free. Returns 0 or -ENOMEM.
 */
int put_path(struct output *out, const struct paths *paths, uint32_t node, size_t reserved);

/* The same for count consecutive nodes of one path, in room columns. */
int put_chain(struct output *out, const struct paths *paths, const uint32_t *chain, size_t count,
	      size_t room);

/*
 * Writes the path at the end of a table row. A terminal too narrow for the whole path gets its last
 * frame, and the callers in the next line. Returns 0 or -ENOMEM.
 */
int put_path_row(struct output *out, const struct paths *paths, uint32_t node);

#endif
