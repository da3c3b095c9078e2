/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baseline file: the runs to compare with, and older sets of runs from which noise is estimated.
 * docs/DIFF.md defines the document.
 *
 * The file is made for version control. Each set is one line, oldest first, so sets added on two
 * branches merge as lines. The same runs give the same bytes.
 */
#ifndef XT_DIFF_BASELINE_H
#define XT_DIFF_BASELINE_H

#include "diff/load/run_profile.h"

#define BASELINE_FORMAT	 "xtrace-baseline"
#define BASELINE_VERSION 1
#define BASELINE_KEEP	 5 /* default number of sets to keep */

/* A change that was intended: see `xtrace baseline accept`. It outlives its set. */
struct baseline_acceptance {
	char *label;	  /* of its set */
	uint64_t time_ns; /* of its set */
	char *row;	  /* "LEVEL(NAME)"; "": all rows */
	char *reason;
};

struct baseline_acceptances {
	LIST(struct baseline_acceptance);
};

/* The runs of one recording session, usually of one commit. */
struct baseline_set {
	char *label;	  /* may be "" */
	uint64_t time_ns; /* start of its first run, since 1970 */
	struct run_set runs;
};

/* All zeros is an empty baseline. */
struct baseline {
	struct baseline_set *sets; /* sorted by time, then label */
	size_t count, capacity;
	struct baseline_acceptances accepted;
};

/*
 * Reads a baseline document. Adds errors to problems. Returns 0 or -EINVAL; call
 * baseline_free() in any case.
 */
int baseline_read(struct baseline *baseline, const char *document, size_t document_bytes,
		  const char *origin, struct problems *problems);
void baseline_free(struct baseline *baseline);

/* A set whose profiles are still packed. */
struct baseline_packed_set {
	const char *label;
	const char *profiles; /* NULL: missing */
};

/*
 * Calls visit() for each set of a document until it returns an error, and adds the accepted changes
 * to a list, which the caller frees in any case. Adds errors of the document to problems. Returns
 * 0, -EINVAL or the result of visit().
 */
int baseline_visit(const char *document, size_t document_bytes, const char *origin,
		   struct problems *problems,
		   int (*visit)(void *context, const struct baseline_packed_set *set),
		   void *context, struct baseline_acceptances *accepted);
void baseline_acceptances_free(struct baseline_acceptances *accepted);

/*
 * Appends the runs of a packed set. *room is the number of bytes that may still be unpacked. Adds
 * errors to problems. Returns 0 or -EINVAL.
 */
int baseline_unpack(struct run_set *runs, const struct baseline_packed_set *set, uint64_t *room,
		    const char *origin, struct problems *problems);

#define BASELINE_ROOM (UINT64_C(1) << 28) /* for all sets of a file, unpacked */

/*
 * Records that the change at a set is intended. Replaces the reason if the row was accepted there
 * before.
 */
void baseline_accept(struct baseline_acceptances *accepted, const char *label, uint64_t time_ns,
		     const char *row, const char *reason);

/* Takes back what was accepted. */
void baseline_remove_acceptance(struct baseline *baseline, size_t index);

/*
 * Adds a set and takes over its runs; *runs is then empty. Replaces a set with the same nonempty
 * label or the same start time. Accepted changes of the label are then at the new set.
 */
void baseline_add(struct baseline *baseline, const char *label, struct run_set *runs);

/* Removes the oldest sets until at most count are left. */
void baseline_keep(struct baseline *baseline, size_t count);

/* Removes all sets with this label and their accepted changes. Returns whether there were any. */
bool baseline_remove_label(struct baseline *baseline, const char *label);

/* Writes the file atomically. Returns 0 or -errno. */
int baseline_write(const struct baseline *baseline, const char *path);

/* Reads a baseline as a side: the runs of its newest set, and all others as history. */
void baseline_read_side(struct run_set *set, const char *document, size_t document_bytes,
			const char *origin, struct problems *problems);

/* The set with this label, or the only one whose label begins with it. NULL: there is none. */
const struct baseline_set *baseline_find_label(const struct baseline *baseline, const char *label);

/* Names labels instead of an unknown one: "did you mean 'v5'?". See text_print(). */
const char *baseline_advise_label(const struct baseline *baseline, const char *label);

#endif
