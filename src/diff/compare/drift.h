/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift: how much a machine changes from one set of a baseline to the next.
 */
#ifndef XT_DIFF_DRIFT_H
#define XT_DIFF_DRIFT_H

#include "diff/compare/run_values.h"

/*
 * The variance of the difference between successive sets of BASE's baseline, including the newest
 * one, and its degrees of freedom. Returns false if there are too few sets.
 */
bool drift_variance(const struct comparison *c, const struct run_values *values,
		    double *variance_out, double *dof_out);

#endif
