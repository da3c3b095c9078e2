/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command xtrace history.
 */
#ifndef XT_DIFF_HISTORY_COMMAND_H
#define XT_DIFF_HISTORY_COMMAND_H

#include "cli/command.h"

extern const struct command command_history;

#endif
