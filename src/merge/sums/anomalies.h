/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read and cannot be quite right, or could not be matched: counted, and named in all
 * summaries. It does no harm beyond what its row says.
 */
#ifndef XT_MERGE_ANOMALIES_H
#define XT_MERGE_ANOMALIES_H

#include "merge/exporter.h"

struct anomaly {
	const char *name;   /* for programs */
	const char *format; /* for people, of the count */
	size_t offset;	    /* of the count in struct run */
};

#define ANOMALIES 19
extern const struct anomaly anomalies[ANOMALIES];

static inline uint64_t anomaly_count(const struct run *run, const struct anomaly *anomaly)
{
	return *(const uint64_t *)((const char *)run + anomaly->offset);
}

#endif
