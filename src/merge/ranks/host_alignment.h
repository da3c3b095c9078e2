/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the clocks of hosts must be moved to agree in timelines.
 *
 * Each host is moved by one time, so that durations and sums stay as recorded. Its clock is right
 * in the middle of the job. Drift makes it less exact towards both ends, which is stated.
 */
#ifndef XT_MERGE_HOST_ALIGNMENT_H
#define XT_MERGE_HOST_ALIGNMENT_H

#include <stddef.h>
#include <stdint.h>

struct run;

struct alignment {
	int64_t *shifts_ns; /* by log of the inputs: add this to its times; 0: not known */
	char **sentences;   /* how well each host is aligned */
	size_t count;	    /* of the sentences */
};

/* Keeps what a run found. Call alignment_free() in both cases. */
void alignment_keep(struct alignment *alignment, const struct run *run);
void alignment_free(struct alignment *alignment);

#endif
