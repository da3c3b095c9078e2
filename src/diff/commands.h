/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace diff compares the runs of two sides and judges the changes. xtrace baseline manages files
 * of reference runs. xtrace history finds since when a program is slower.
 */
#ifndef XT_DIFF_COMMANDS_H
#define XT_DIFF_COMMANDS_H

#include "cli/command.h"

/* The index of xtrace history, in or beside the first source. */
#define HISTORY_INDEX ".xtrace-history"

extern const struct command command_diff, command_baseline, command_history;

#endif
