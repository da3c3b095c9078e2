/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeds symbols into several logs in parallel. The workers share open modules, so each binary is
 * read once, however many processes used it.
 */
#ifndef XT_MERGE_EMBED_WORKERS_H
#define XT_MERGE_EMBED_WORKERS_H

#include <stddef.h>

#include "merge/base/report.h"
#include "merge/symbolize/debug_files.h"
#include "merge/read/inputs.h"

/*
 * Calls embed_symbols() for each log. worker_count 0: one per processor. Reports errors in the
 * order of the logs. Returns 0 or -errno.
 */
int embed_all(const struct inputs *inputs, const char *torch_trace, size_t worker_count,
	      struct debug_search *search, struct report *report);

#endif
