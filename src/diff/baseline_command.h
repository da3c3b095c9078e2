/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace baseline: creates, shows, extends and prunes baselines (diff/load/baseline.h).
 */
#ifndef XT_DIFF_BASELINE_COMMAND_H
#define XT_DIFF_BASELINE_COMMAND_H

#include "cli/command.h"

/* xtrace baseline: creates, shows, extends and prunes baselines (diff/baseline.h). */
extern const struct command command_baseline;

#endif
