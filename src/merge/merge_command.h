/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_MERGE_COMMAND_H
#define XT_MERGE_MERGE_COMMAND_H

#include "cli/command.h"

/* xtrace merge: reads the logs of a traced program and writes reports and exports. */
extern const struct command command_merge;

#endif
