/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace diff: what became slower between two sides. The work is xtrace-diff's, which takes the place of this
 * process, with all options as they are.
 */
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "install_paths.h"

static int run(const struct command *command, int argc, char **argv)
{
	struct install_paths paths;

	(void)argc;
	install_paths_find(&paths);
	argv[0] = "xtrace-diff";
	execv(paths.diff, argv);
	complain("%s: %s: %s", command->name, paths.diff, strerror(errno));
	return STATUS_USAGE;
}

const struct command command_diff = {
	.name = "diff",
	.arguments = "[OPTION]... BASE NEW",
	.summary = "Compares runs: what became slower, where, and is that sure",
	.details = "BASE and NEW are directories, logs, profiles or baselines; several runs of a "
		   "side are "
		   "separated\nby commas. 'xtrace diff --help' lists the options.\n",
	.run = run,
};
