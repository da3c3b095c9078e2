/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges the time that ranks wait in a collective to the call paths of the rank that came last.
 *
 * Since the previous collective that held all ranks up, that rank spent more time in some paths
 * than the mean of the others. The wait is divided in proportion to this excess. Collectives that
 * other work overlaps hold nobody up: a rank that is late there is late at the following ones, too,
 * so the comparison goes back to the last one that did.
 */
#ifndef XT_MERGE_BLAME_H
#define XT_MERGE_BLAME_H

#include "merge/ranks/compared_ranks.h"

/* Adds the causes of all waits to the report. The waits of all ranks must be known. */
void blame_waits(struct collectives_report *report, const struct run *run);

#endif
