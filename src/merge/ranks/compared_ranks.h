/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives of several ranks, if the run compares them.
 */
#ifndef XT_MERGE_COMPARED_RANKS_H
#define XT_MERGE_COMPARED_RANKS_H

#include "merge/ranks/collectives_report.h"
#include "merge/ranks/rank_weights.h"
#include "merge/sums/rank_log.h"

struct compared_ranks {
	struct rank_log *logs; /* of the logs read so far */
	size_t log_count;
	/* Complete before the outputs end: */
	struct collectives_report report;
	struct rank_weights weights; /* parts of the weights of paths */
};

#endif
