/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_MERGE_COMMAND_H
#define XT_MERGE_MERGE_COMMAND_H

#include "cli/command.h"

/* xtrace merge: reads the logs of a traced program and writes reports and exports. */
extern const struct command command_merge;

struct cluster;

/*
 * Runs the command in one of several processes, as struct cluster says. Only process 0 prints and
 * writes. Returns the exit status.
 */
int merge_in_cluster(struct cluster *cluster);

#endif
