/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which amount of work the values of a profile are of.
 */
#ifndef XT_DIFF_WHOLE_RUN_H
#define XT_DIFF_WHOLE_RUN_H

#include "diff/load/run_profile.h"

/*
 * Makes all values those of the whole run, warm-up included, and those of NVTX ranges the mean of
 * one instance. Errors stay relative: how much iterations differ still tells the noise of a run.
 */
void run_profile_use_whole(struct run_profile *profile);

#endif
