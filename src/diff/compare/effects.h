/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the effects of all rows.
 */
#ifndef XT_DIFF_EFFECTS_H
#define XT_DIFF_EFFECTS_H

#include "diff/compare/comparison.h"

/* Finds the factor that all GPU times of a run have in common, and its effect. */
void effects_find_common(struct comparison *c);

/* Computes all effects of all rows, and sorts the rows. */
void effects_compute(struct comparison *c);

#endif
