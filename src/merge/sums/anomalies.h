/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read and cannot be quite right, or could not be matched: counted, and named in all
 * summaries. It does no harm beyond what its row says.
 */
#ifndef XT_MERGE_ANOMALIES_H
#define XT_MERGE_ANOMALIES_H

#include "merge/exporter.h"

struct doubt {
	const char *name;   /* for programs */
	const char *format; /* for people, of the count */
	size_t offset;	    /* of the count in struct run */
};

#define DOUBTS_COUNT 19
extern const struct doubt doubts[DOUBTS_COUNT];

static inline uint64_t doubt_count(const struct run *run, const struct doubt *doubt)
{
	return *(const uint64_t *)((const char *)run + doubt->offset);
}

#endif
