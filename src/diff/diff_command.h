/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace diff: compares the runs of two sides and judges the changes.
 */
#ifndef XT_DIFF_DIFF_COMMAND_H
#define XT_DIFF_DIFF_COMMAND_H

#include "cli/command.h"

/* xtrace diff: compares the runs of two sides and judges the changes. */
extern const struct command command_diff;

#endif
