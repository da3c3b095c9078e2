/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a log self-contained: the names of all functions in its stacks are appended to it, and
 * where there is debug information, what was inlined, and the lines.
 */
#ifndef XT_MERGE_EMBED_H
#define XT_MERGE_EMBED_H

#include "merge/base/report.h"
#include "merge/symbolize/debug_files.h"
#include "merge/read/inputs.h"

/*
 * Appends SYMBOL and SOURCE chunks, META symbols.embedded=1 and END to the log. A log that has them already
 * is left as it is, and so is one that a process may still be writing. What goes wrong is
 * reported. 0 or -ENOMEM.
 */
int embed_symbols(const struct input *log, struct debug_search *search, struct report *report);

#endif
