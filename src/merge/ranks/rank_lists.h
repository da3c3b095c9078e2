/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of ranks in words. Strings are freed by the caller; NULL: out of memory.
 */
#ifndef XT_MERGE_RANK_LISTS_H
#define XT_MERGE_RANK_LISTS_H

struct communicator;
struct run;

/* "0-3, 7": the ranks of a communicator in the job, as far as they are known. */
char *communicator_ranks_text(const struct run *run, const struct communicator *communicator);

/*
 * Returns the ranks of the job that have no log, "3, 5-7"; "" if there are none, or if that is not
 * known.
 */
char *missing_ranks_text(const struct run *run);

#endif
