/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a comparison.
 */
#ifndef XT_DIFF_COMPARE_ROWS_H
#define XT_DIFF_COMPARE_ROWS_H

#include "diff/compare/comparison.h"

/* Makes comparison->rows from the runs, without effects. */
void compare_rows_make(struct comparison *comparison);

#endif
