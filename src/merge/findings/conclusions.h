/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the findings, the headline and the table of processes conclude from the sums of a run.
 */
#ifndef XT_MERGE_CONCLUSIONS_H
#define XT_MERGE_CONCLUSIONS_H

#include "merge/findings/findings.h"
#include "merge/findings/headline.h"
#include "merge/findings/ranks.h"

/* Zeros are empty. */
struct conclusions {
	struct findings findings;
	struct headline headline;
	struct ranks ranks;
};

static inline void conclusions_free(struct conclusions *conclusions)
{
	findings_free(&conclusions->findings);
	headline_free(&conclusions->headline);
	ranks_free(&conclusions->ranks);
}

#endif
