/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a comparison of ranks in words. The caller frees strings.
 */
#ifndef XT_MERGE_COLLECTIVES_WORDS_H
#define XT_MERGE_COLLECTIVES_WORDS_H

#include "merge/ranks/wait_cause.h"

struct communicator;
struct run;

/* Says that the logs are of several jobs. */
char *jobs_text(const struct run *run);

/* Adds sentences on what the figures mean. The caller frees them. Returns their number. */
#define COLLECTIVES_NOTES_MAX 3
size_t collectives_notes(const struct run *run, char *notes[COLLECTIVES_NOTES_MAX]);

/* Says which ranks have no log, or how many collectives lack some ranks; "" if none do. */
char *incomplete_text(const struct run *run);

/* "AllReduce 13 of ranks 0-3". */
char *collective_text(const struct run *run, const struct communicator *communicator, size_t number,
		      uint8_t operation);

/* "rank", "moving", "link", "hang", "unknown" or "none". */
const char *verdict_kind_name(enum verdict_kind kind);

/* One or two sentences. step_cost: what late ranks cost in a step; NULL: in the job. */
char *verdict_text(const struct run *run, const char *step_cost);

/* "0-3, 7": the ranks of a communicator in the job, as far as they are known. */
char *communicator_ranks_text(const struct run *run, const struct communicator *communicator);

/*
 * Returns the ranks of the job that have no log, "3, 5-7"; "" if there are none, or if that is not
 * known.
 */
char *missing_ranks_text(const struct run *run);

#endif
