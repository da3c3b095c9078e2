/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a log self-contained: appends the names of all functions in its stacks and, if debug
 * information exists, inlined functions and lines.
 */
#ifndef XT_MERGE_EMBED_H
#define XT_MERGE_EMBED_H

#include "merge/base/report.h"
#include "merge/symbolize/debug_files.h"
#include "merge/read/inputs.h"

/*
 * Appends SYMBOL, SOURCE and COMPILED chunks, META symbols.embedded=1 and END to the log. Skips
 * chunks that the log has, and a log that a process may still be writing. torch_trace: the folder
 * of PyTorch's structured logs; NULL: the folder of the log. Reports errors. Returns 0 or -errno.
 */
int embed_symbols(const struct input *log, const char *torch_trace, struct debug_search *search,
		  struct report *report);

#endif
