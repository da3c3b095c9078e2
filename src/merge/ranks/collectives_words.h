/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a comparison of ranks in words. The caller frees strings.
 */
#ifndef XT_MERGE_COLLECTIVES_WORDS_H
#define XT_MERGE_COLLECTIVES_WORDS_H

#include "merge/ranks/verdict.h"

struct communicator;
struct run;

/* Says that the logs are of several jobs. */
char *jobs_text(const struct run *run);

/* Says which ranks have no log, or how many collectives lack some ranks; "" if none do. */
char *incomplete_text(const struct run *run);

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
