/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a comparison of ranks in words. Strings are freed by the caller; NULL: out of memory.
 */
#ifndef XT_MERGE_COLLECTIVES_WORDS_H
#define XT_MERGE_COLLECTIVES_WORDS_H

#include "merge/exporter.h"

/* Shown instead of a path for PATH_ROOT. */
#define CAUSE_UNKNOWN "[no path takes longer than in other ranks]"

/* Whether a call path ends in a collective: its transfers take longer. */
bool wait_cause_is_transfer(const struct paths *paths, uint32_t node);

/* Whether it ends in idle time in which the CPU had not launched the next work. */
bool wait_cause_is_launch_late(const struct paths *paths, uint32_t node);

/* "idle", "kernel", "collective", "copy", "memset" or "unknown": what a call path ends in. */
const char *wait_cause_kind(const struct paths *paths, uint32_t node);

/*
 * Returns the innermost frame of the user's code in a path, or else the innermost function, as a
 * name in paths; NAME_EMPTY if there is none.
 */
uint32_t wait_cause_frame(const struct paths *paths, uint32_t node);

/* "load_batch (data.py:88)"; "" if there is no frame. */
char *wait_cause_where(const struct paths *paths, uint32_t node);

/* "0-3, 7": the ranks of a communicator in the job, as far as they are known. */
char *communicator_ranks_text(const struct run *run, const struct communicator *communicator);

/*
 * Returns the ranks of the job that have no log, "3, 5-7"; "" if there are none, or if that is not
 * known.
 */
char *missing_ranks_text(const struct run *run);

/* "AllReduce 13 of ranks 0-3". */
char *collective_text(const struct run *run, const struct communicator *communicator, size_t number,
		      uint8_t operation);

/* The labels of the members that never reached a collective; "" if all did. */
char *absent_members_text(const struct run *run, const struct communicator *communicator,
			  size_t number);

/* "rank", "moving", "link", "hang", "unknown" or "none". */
const char *verdict_kind_name(enum verdict_kind kind);

/* One or two sentences. */
char *verdict_text(const struct run *run);

/*
 * How well the clocks of the hosts are aligned, as a sentence. "" if there is only one host. index:
 * from 1, of the clocks.
 */
char *rank_clock_text(const struct run *run, size_t index);

#endif
