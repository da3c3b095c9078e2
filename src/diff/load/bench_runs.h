/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of xtrace bench: a directory of runs, and a file with the GPU state next to each run.
 * See xtrace(1), FILES.
 */
#ifndef XT_DIFF_BENCH_RUNS_H
#define XT_DIFF_BENCH_RUNS_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "diff/base/problems.h"

/*
 * List the runs of a bench directory without warm-up runs; free them with bench_runs_free().
 * Returns 0, -ENOENT if path is not a bench directory, or -EINVAL after adding a problem.
 */
int bench_runs_find(const char *path, char ***paths_out, size_t *count_out,
		    struct problems *problems);
void bench_runs_free(char **paths, size_t count);

/* Reads a regular file. NULL on any error. The caller calls cJSON_Delete(). */
cJSON *bench_runs_read_json(const char *folder, const char *name);

/* Mean SM clock of all GPUs from gpu.json of a trace directory, in MHz. NAN if unknown. */
double bench_runs_clock_mhz(const char *path);

#endif
