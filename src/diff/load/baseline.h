/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline: a file that keeps the runs that later ones are compared with, and some sets of older
 * runs, from which it is learned how much runs differ by themselves. docs/DIFF.md defines the document.
 *
 * It is made to lie in a repository: one line a set, the oldest first, each line ended alike, so that
 * sets that were added on two branches merge as lines; the same runs give the same bytes.
 */
#ifndef XT_DIFF_BASELINE_H
#define XT_DIFF_BASELINE_H

#include "diff/load/run_set.h"

#define BASELINE_FORMAT	 "xtrace-baseline"
#define BASELINE_VERSION 1
#define BASELINE_KEEP	 5 /* sets, where nobody says how many */

/* The runs of one day, one commit. */
struct baseline_set {
	char *label;	  /* "" if it has none */
	uint64_t time_ns; /* when its first run began, since 1970 */
	struct run_set runs;
};

/* All zeros is an empty one. */
struct baseline {
	struct baseline_set *sets; /* by time, then by label */
	size_t count;
	size_t capacity;
};

/*
 * Reads the file's document. What is wrong with it is added to problems. 0, -EINVAL or -ENOMEM;
 * baseline_free() in any case.
 */
int baseline_read(struct baseline *baseline, const char *document, size_t document_bytes,
		  const char *origin, struct problems *problems);
void baseline_free(struct baseline *baseline);

/*
 * Adds a set of runs, which are taken over (the set is empty then). One of the same label that is not
 * empty, or that began at the same time (it is the same one), is replaced. 0 or -ENOMEM.
 */
int baseline_add(struct baseline *baseline, const char *label, struct run_set *runs);

/* Leaves that many of the newest sets. */
void baseline_keep(struct baseline *baseline, size_t count);
void baseline_remove(struct baseline *baseline, size_t place);

/* Writes the file in one step: it is never half there. 0 or -errno. */
int baseline_write(const struct baseline *baseline, const char *path);

/* The baseline as a side: the runs of its newest set, and the others as history. */
extern const struct run_format baseline_format;

#endif
