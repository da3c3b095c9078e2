/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differences in counts that only come from where warm-up ends.
 */
#ifndef XT_DIFF_WARMUP_BOUNDARY_H
#define XT_DIFF_WARMUP_BOUNDARY_H

#include "diff/compare/run_values.h"

/* Do both sides execute this equally often, but count different parts of it as warm-up? */
bool warmup_boundary_explains(const struct comparison *c, const struct run_values *values);

#endif
