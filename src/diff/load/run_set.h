/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of one side of a comparison, and the formats of documents that contain runs.
 */
#ifndef XT_DIFF_RUN_SET_H
#define XT_DIFF_RUN_SET_H

#include "diff/load/run_profile.h"

/* All zeros is an empty set. */
struct run_set {
	struct run_profile **runs; /* owned */
	size_t count;
	size_t capacity;
	struct problems notes; /* about the runs, for people */
};

/* Appends a run; the set then owns it. */
void run_set_add(struct run_set *set, struct run_profile *run);
void run_set_free(struct run_set *set);

/*
 * A JSON document that contains runs, recognised by its "format" member. read() appends
 * the runs to the set, and errors to problems. Returns 0 or -EINVAL.
 */
struct run_format {
	const char *format;
	int (*read)(struct run_set *set, const char *document, size_t document_bytes,
		    const char *origin, struct problems *problems);
};

#endif
