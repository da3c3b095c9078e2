/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of one run: who ran where, whether anything is missing, and for everything that has a
 * cost its mean for one iteration and how sure that is. `xtrace-merge --profile` writes it of logs;
 * docs/DIFF.md defines the document.
 */
#ifndef XT_DIFF_RUN_PROFILE_H
#define XT_DIFF_RUN_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/base/level.h"
#include "diff/base/problems.h"

#define RUN_PROFILE_VERSION 1

enum trust_word { TRUST_COMPLETE, TRUST_DEGRADED, TRUST_DAMAGED };

/* What is not known is NAN. Errors are standard errors of the mean, from iteration to iteration. */
struct quantity {
	double mean;
	double typical;	 /* without what is far out: what runs are compared by */
	double error;	 /* of typical */
	double residual; /* error that is left when what all paths have in common is taken away */
};

/* Something that has a cost: a row of a level. */
struct profile_entry {
	enum level level;
	const char *key;	   /* same in other runs: names without what a compiler or a line
				    * number changes; of paths, frames with ';' between */
	const char *const *frames; /* as shown, "f (file.c:12)", outermost first */
	uint32_t frame_count;	   /* 1 on levels without frames */
	struct quantity quantities[METRICS];
	double whole_value; /* of all of the run, warm-up and all */
	double whole_count;
};

struct run_device {
	const char *name;
	const char *uuid;
};

/* Texts belong to the profile. */
struct run_profile {
	char *origin;	/* where it was read, for messages */
	char *document; /* as it was read, not terminated: what a baseline keeps */
	size_t document_bytes;
	const char *program; /* of the process that used the GPU most */
	const char *title;   /* its script, or else program */
	const char *command;
	const char *host;
	const char *driver; /* "13000" */
	const char *cupti;
	bool is_simulated;
	uint64_t start_realtime_ns; /* 0: not known */
	struct run_device *devices;
	size_t device_count;
	enum trust_word trust;
	const char **warnings;
	size_t warning_count;
	const char *selection;	/* the options that chose a part of the run; "": it is all of it */
	const char *iterations; /* "nvtx", "period", "none", or "missing": the range that was asked
				 * for is not there */
	const char *iteration_name;
	uint64_t found_count, warmup_count, used_count; /* iterations */
	double clock_mhz;	       /* mean clock of the GPUs while it ran; NAN: not known */
	uint32_t history;	       /* 0: a run of its side. n: of the n-th older set of a
					 * baseline, which tells of noise alone */
	struct profile_entry *entries; /* by level and key */
	size_t entry_count;
	struct arena *memory; /* of all texts and lists */
};

/*
 * Reads a document of document_bytes, of which a copy is kept. What is wrong with it is added to
 * problems. 0, -EINVAL or -ENOMEM; *profile_out is to be given back with run_profile_free().
 */
int run_profile_read(struct run_profile **profile_out, const char *document, size_t document_bytes,
		     const char *origin, struct problems *problems);
void run_profile_free(struct run_profile *profile);

/* Are its numbers for one iteration? Else for the run. */
static inline bool run_profile_has_iterations(const struct run_profile *profile)
{
	return profile->used_count &&
	       (profile->iterations[0] == 'n' ? profile->iterations[1] == 'v'
					      : profile->iterations[0] == 'p');
}

/* The entry of that key, or NULL. */
const struct profile_entry *run_profile_find(const struct run_profile *profile, enum level level,
					     const char *key);

#endif
