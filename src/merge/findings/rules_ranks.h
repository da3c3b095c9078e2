/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The finding that ranks wait for each other in collectives.
 */
#ifndef XT_MERGE_RULES_RANKS_H
#define XT_MERGE_RULES_RANKS_H

struct run;

/* Adds the finding if run->compared->report has a verdict. */
void findings_compare_ranks(struct run *run);

#endif
