/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a point of a history from a set of runs.
 */
#ifndef XT_DIFF_HISTORY_POINTS_H
#define XT_DIFF_HISTORY_POINTS_H

#include "diff/history/history.h"
#include "diff/load/run_profile.h"

/* Writes the id of a content. */
void point_id(char out[ID_BYTES], const char *content, size_t content_bytes);

/* The same for the documents of some runs. */
void point_id_of_runs(char out[ID_BYTES], struct run_profile *const *runs, size_t count);

/*
 * Adds the mean of the runs as a point with this id. Refuses incomplete runs and runs without GPU
 * work: adds the reason to problems and returns -EINVAL.
 */
int point_add(struct history *history, const char *id, struct run_profile *const *runs,
	      size_t count, struct problems *problems);

#endif
