/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compute the effects of all rows.
 */
#ifndef XT_DIFF_EFFECTS_H
#define XT_DIFF_EFFECTS_H

#include "diff/compare/comparison.h"

/*
 * Find the factor that all GPU times of a run have in common, and its effect. Returns 0 or -ENOMEM.
 */
int effects_find_common(struct comparison *c);

/* Compute all effects of all rows, and sort the rows. Returns 0 or -ENOMEM. */
int effects_compute(struct comparison *c);

#endif
