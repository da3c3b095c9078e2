/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the user names to run profiles: directories and logs are profiled by xtrace-merge, several at
 * a time; profiles and baselines are read.
 */
#ifndef XT_DIFF_LOAD_RUNS_H
#define XT_DIFF_LOAD_RUNS_H

#include "diff/run_profile.h"

/* The runs of one side. All zeros is an empty one. */
struct run_set {
	struct run_profile **runs; /* owned */
	size_t count;
	size_t capacity;
};

struct load_options {
	const char *iteration;	/* for it; NULL: found out */
	const char *warmup;	/* likewise */
	unsigned workers_count; /* how many of them run at a time */
};

/*
 * Loads all runs of the sides: arguments[i], names separated by commas, into sets[i]. A directory or a
 * log is one run. What cannot be loaded is added to problems. 0, -EINVAL if there was a problem, or
 * -ENOMEM.
 */
int load_runs(struct run_set *sets, char *const *arguments, size_t set_count,
	      const struct load_options *options, struct problems *problems);
void run_set_free(struct run_set *set);

/*
 * Sees whether the names of a side are there, and whether those that are documents can be read: logs are not looked into. As
 * load_runs().
 */
int load_check(const char *argument, struct problems *problems);

/* Appends a run, which the set then owns. 0 or -ENOMEM. */
int run_set_add(struct run_set *set, struct run_profile *run);

/*
 * A kind of document that runs can be read of: {"format": "…"}. read() adds the runs to the set and says what is
 * wrong with the document. 0, -EINVAL or -ENOMEM.
 */
struct run_format {
	const char *format;
	int (*read)(struct run_set *set, const char *document, size_t document_bytes,
		    const char *origin, struct problems *problems);
};
extern const struct run_format *const run_formats[]; /* ended by NULL */

#endif
