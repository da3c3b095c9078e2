/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a run can be trusted, in a word and three lines: the same in the summary for people, the one for
 * programs and the HTML report.
 *
 *	complete	all that happened is there, or was left out because the user said which part
 *			of the run is wanted
 *	degraded	something was lost, estimated, or left out to keep a bound; it is said what
 *	damaged		what was recorded cannot all be read
 */
#ifndef XT_MERGE_TRUST_H
#define XT_MERGE_TRUST_H

#include "merge/exporter.h"

enum trust_level { TRUST_COMPLETE, TRUST_DEGRADED, TRUST_DAMAGED };

#define TRUST_LINES	  3
#define TRUST_REASONS_MAX 64

struct trust {
	enum trust_level level;
	char *reasons[TRUST_REASONS_MAX]; /* why it is not complete; the first matter most */
	size_t reason_count;
	char *lines[TRUST_LINES]; /* the word and how; the account; what the tracer cost */
};

/* "complete" and so on. */
const char *trust_level_name(enum trust_level level);

/* When all logs are read. 0 or -ENOMEM; to be freed in either case. */
int trust_judge(struct trust *trust, const struct run *run);
void trust_free(struct trust *trust);

#endif
