/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts changes of a baseline that xtrace history reports, and takes that back.
 */
#ifndef XT_DIFF_ACCEPT_H
#define XT_DIFF_ACCEPT_H

#include "diff/base/problems.h"
#include "diff/load/baseline.h"

struct accept_request {
	const char *file;   /* that the baseline was read from */
	const char *by;	    /* label of a set; NULL: the set of the only change */
	const char *row;    /* "LEVEL(NAME)"; NULL: all rows */
	const char *reason; /* not NULL for accept_change() */
	bool force;	    /* accept though no change is found */
};

/*
 * Changes the baseline in memory and adds a line for each change that is accepted, or no longer
 * accepted. Returns false after an error message.
 */
bool accept_change(struct baseline *baseline, const struct accept_request *request,
		   struct problems *lines);
bool accept_undo(struct baseline *baseline, const struct accept_request *request,
		 struct problems *lines);

#endif
