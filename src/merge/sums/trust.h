/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a run can be trusted: one word and three lines, which the text summary, the JSON summary
 * and the HTML report share.
 *
 * 	complete	every event of the selected part of the run is there
 * 	degraded	something was lost, estimated, or left out to keep a limit
 * 	damaged		part of what was recorded cannot be read
 */
#ifndef XT_MERGE_TRUST_H
#define XT_MERGE_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "merge/sums/run.h"

enum trust_level { TRUST_COMPLETE, TRUST_DEGRADED, TRUST_DAMAGED };

#define TRUST_LINES	  3
#define TRUST_REASONS_MAX 64

struct trust {
	enum trust_level level;
	char *reasons[TRUST_REASONS_MAX]; /* why it is not complete, most important first */
	size_t reason_count;
	const char *anomaly_reason; /* the one that refers to the warnings; NULL: none */
	bool refers_to_warnings;    /* only warnings tell why it is degraded */
	char *lines[TRUST_LINES];   /* the level with reasons, the account, the tracer's cost */
};

/* "complete", "degraded" or "damaged". */
const char *trust_level_name(enum trust_level level);

/* Judges the run after all logs are read. Call trust_free() in either case. */
void trust_judge(struct trust *trust, const struct run *run);
void trust_free(struct trust *trust);

/* Inconsistent or unmatched events. They are counted and listed in every summary. */
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
