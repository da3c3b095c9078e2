/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the sources that the user named into a history. A source that the index knows is not
 * parsed again.
 */
#ifndef XT_DIFF_HISTORY_SOURCES_H
#define XT_DIFF_HISTORY_SOURCES_H

#include "diff/history/history.h"
#include "diff/load/load_runs.h"

struct source_options {
	struct load_options load;
	bool each_run; /* each run is a point, not each set of runs */
};

/*
 * Reads a baseline, a profile, a log, a trace or bench directory, a directory that contains those,
 * or "BRANCH:PATH". Adds unreadable parts to history->problems.
 */
void source_read(struct history *history, const char *argument,
		 const struct source_options *options);

/*
 * Sets the ranks of the used points: the positions of their commits on HEAD and the branches of the
 * sources. Notes that git is missing.
 */
void source_rank_points(struct history *history);

#endif
