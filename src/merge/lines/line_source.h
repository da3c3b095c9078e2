/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_LINE_SOURCE_H
#define XT_MERGE_LINE_SOURCE_H

#include "merge/lines/lines.h"

struct run;

/* Reads the sources of the largest lines, unless the user does not want that. */
void line_sources_read(struct lines *lines, const struct run *run);

#endif
