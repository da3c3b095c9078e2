/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the runs that the user named: profile trace directories and logs with xtrace merge,
 * several at a time, and read run profiles, baselines and bench directories.
 *
 * xtrace bench writes a directory of runs, and a file with the GPU state next to each run. See
 * xtrace(1), FILES.
 */
#ifndef XT_DIFF_LOAD_RUNS_H
#define XT_DIFF_LOAD_RUNS_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "cli/option.h"
#include "diff/base/text.h"
#include "diff/load/run_profile.h"

/* Reads a document of this "format". NULL on any error. The caller calls cJSON_Delete(). */
cJSON *bench_runs_read_json(const char *folder, const char *name, const char *format);

#define LOAD_DETECTED "detected" /* value of --iteration: no range, but what is detected */

struct load_options {
	bool is_per_iteration;	/* else values are of whole runs */
	const char *iteration;	/* value of its --iteration; NULL: detect */
	const char *warmup;	/* value of its --warmup; NULL: detect */
	unsigned workers_count; /* processes of xtrace merge at a time */
};

/* Apply --iteration and --warmup to the load_options at row->offset of context. */
int load_apply_iteration(void *context, const struct option_row *row, const char *value);
int load_apply_warmup(void *context, const struct option_row *row, const char *value);

/*
 * Loads arguments[i], names separated by commas, into sets[i]. A trace directory or a log is one
 * run. Adds each name that cannot be loaded to problems.
 */
void load_runs(struct run_set *sets, char *const *arguments, size_t set_count,
	       const struct load_options *options, struct problems *problems);

/*
 * Checks that the names of a side exist and that its documents can be read. Does not open logs.
 */
void load_check(const char *argument, struct problems *problems);

/* Whether the run is a directory or a log, not a profile or in a baseline. */
bool load_is_recording(const struct run_profile *run);

/*
 * Checks that runs can be compared: same program, same kind of machine, complete logs, enough runs.
 */
struct check_options {
	struct load_options load; /* of the runs */
	bool allow_different;	  /* programs, devices, drivers, hosts */
	bool allow_different_iterations;
	bool allow_degraded; /* incomplete logs, but not damaged ones */
	const char *advice;  /* added if runs differ: "; see …"; NULL: that of xtrace diff */
};

/* Numbers of iterations of the runs of a side, without history. */
struct iteration_counts {
	uint64_t median, least, most;
};
struct iteration_counts check_count_iterations(const struct run_set *set);

/* Do these numbers of iterations differ by more than 5 %? 0 is an unknown number. */
bool check_counts_differ(uint64_t a, uint64_t b);

/* Are these two profiles of the same run? */
bool check_same_run(const struct run_profile *a, const struct run_profile *b);

/* Adds to problems each difference in program, GPU, driver, CUPTI or iterations. */
void check_alike(const struct run_set *base, const struct run_set *new,
		 const struct check_options *options, struct problems *problems);

/* Adds to problems every reason why the runs cannot be compared. */
void check_runs(const struct run_set *base, const struct run_set *new,
		const struct check_options *options, struct problems *problems);

#endif
