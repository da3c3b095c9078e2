/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a process that may be borrowed, the best first. Looks at /proc and memory only.
 */
#ifndef XT_ATTACH_CANDIDATES_H
#define XT_ATTACH_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/schedule.h"
#include "attach/target.h"
#include "attach/wait_calls.h"

#define CANDIDATES_MAX	       64
#define CANDIDATES_REFUSED_MAX 1024
#define CANDIDATE_WHY_BYTES    128

struct candidate {
	pid_t tid;
	enum wait_rank rank;
	bool is_last;	 /* its stack must be walked again once it is stopped */
	bool is_refused; /* it was stopped in vain before */
	bool is_locked;	 /* it waits for a lock, which an allocator may have */
	struct schedule schedule;
	bool is_unusual;		   /* its schedule */
	char why_not[CANDIDATE_WHY_BYTES]; /* empty: it may be tried */
};

struct candidates {
	struct candidate list[CANDIDATES_MAX]; /* those to try first, then the others */
	size_t count, fit_count;
	size_t thread_count;		       /* of the process */
	struct schedule usual;		       /* for threads of xtrace */
	pid_t refused[CANDIDATES_REFUSED_MAX]; /* a ring */
	size_t refused_count;
};

/* Start with all zeros. Threads that were refused come last, until all were. */
void candidates_find(struct candidates *candidates, struct target *target);

/* The thread was stopped, but must not be borrowed now. */
void candidates_refuse(struct candidates *candidates, struct candidate *candidate, const char *why);

#endif
