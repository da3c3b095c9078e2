/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What xtrace bench leaves: a directory that stands for its runs, and beside each run the state of the
 * GPUs while it ran. (xtrace(1), FILES.)
 */
#ifndef XT_DIFF_BENCH_RUNS_H
#define XT_DIFF_BENCH_RUNS_H

#include <stddef.h>

#include "diff/base/problems.h"

/*
 * If path is a bench directory: the paths of its runs that count, to be freed as bench_runs_free(). 0 if it
 * is, -ENOENT if it is none, -EINVAL if something is wrong with it, or -ENOMEM.
 */
int bench_runs_find(const char *path, char ***paths_out, size_t *count_out,
		    struct problems *problems);
void bench_runs_free(char **paths, size_t count);

/* The mean SM clock of the GPUs in a trace directory's gpu.json, in MHz; NAN: not known. */
double bench_runs_clock_mhz(const char *path);

#endif
