/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the GPU time of a call path differs between the logs of several ranks.
 *
 * The logs come one after the other, so a few numbers per path are enough. Collectives are left
 * out: their time is mostly a wait for others.
 */
#ifndef XT_MERGE_RANK_SPREAD_H
#define XT_MERGE_RANK_SPREAD_H

#include <stddef.h>
#include <stdint.h>

struct paths;

/* The GPU time of a path in the logs that have it. */
struct path_spread {
	uint64_t sum_ns, max_ns, min_ns;
	uint64_t open_ns;  /* of the log that is being added */
	uint32_t open_log; /* index in the inputs, from 1; 0: none */
	uint32_t max_log;  /* index in the inputs */
	uint32_t count;	   /* logs that have the path */
};

/* Zeros are an empty list. */
struct rank_spread {
	struct path_spread *paths; /* by node in run->paths */
	size_t capacity;
	uint32_t *rows; /* nodes whose time differs, the largest difference first */
	size_t row_count;
};

/* Adds GPU time of a path of a log. Logs come one after the other. */
void rank_spread_add(struct rank_spread *spread, uint32_t node, size_t log, uint64_t ns);

/* Fills in rows, when all logs were added. */
void rank_spread_finish(struct rank_spread *spread, const struct paths *paths);
void rank_spread_free(struct rank_spread *spread);

/* The mean of the logs that have a path. */
static inline uint64_t path_spread_mean_ns(const struct path_spread *path)
{
	return path->count ? path->sum_ns / path->count : 0;
}

#endif
