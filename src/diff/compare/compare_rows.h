/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a comparison: which entries of which runs are one thing.
 */
#ifndef XT_DIFF_COMPARE_ROWS_H
#define XT_DIFF_COMPARE_ROWS_H

#include "diff/compare/comparison.h"

/* Fills in comparison->rows of its runs, without effects. 0 or -ENOMEM. */
int compare_rows_make(struct comparison *comparison);

#endif
