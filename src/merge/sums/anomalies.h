/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anomalies: inconsistent or unmatched events. They are counted and listed in every summary.
 */
#ifndef XT_MERGE_ANOMALIES_H
#define XT_MERGE_ANOMALIES_H

#include "merge/sums/run.h"

struct anomaly {
	const char *name;   /* key in the JSON summary */
	const char *format; /* message for people; its argument is the count */
	size_t offset;	    /* offset of the count in struct sums */
};

#define ANOMALIES 19
extern const struct anomaly anomalies[ANOMALIES];

static inline uint64_t anomaly_count(const struct run *run, const struct anomaly *anomaly)
{
	return *(const uint64_t *)((const char *)run->sums + anomaly->offset);
}

#endif
