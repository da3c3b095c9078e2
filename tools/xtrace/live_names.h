/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernels and call paths of running processes, read from the files of their modules.
 *
 * A path has Python frames, or else native ones, outermost first, separated by ';'. It ends where
 * CUDA begins, and has only its innermost frames. Paths with equal names are one.
 */
#ifndef XTRACE_LIVE_NAMES_H
#define XTRACE_LIVE_NAMES_H

#include "live/follow.h"
#include "merge/naming/demangle.h"
#include "merge/symbolize/module_cache.h"

struct live_names {
	struct names mangled, shown; /* of functions and kernels */
	struct demangle_cache demangled;
	struct names paths, kernels; /* by row of the rankings */
	struct module_cache modules;
	struct debug_search search;
};

/* The struct must not move afterwards. Returns 0 or -ENOMEM; free it in any case. */
int live_names_init(struct live_names *names);
void live_names_free(struct live_names *names);

/* For live_log_open(). Several logs may share the names. */
struct live_namer live_names_namer(struct live_names *names);

/* The name of a row, valid until the next log is read. */
const char *live_names_path(const struct live_names *names, size_t row);
const char *live_names_kernel(const struct live_names *names, size_t row);

#endif
