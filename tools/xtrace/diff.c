/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace diff: what became slower between two sides, and xtrace baseline: what is compared with. The work is
 * that of xtrace-diff and xtrace-baseline, which take the place of this process, with all options as they are.
 */
#include "command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "install_paths.h"

static int become(const struct command *command, const char *program, char **argv)
{
	execv(program, argv);
	complain("%s: %s: %s", command->name, program, strerror(errno));
	return STATUS_USAGE;
}

static int run_diff(const struct command *command, int argc, char **argv)
{
	struct install_paths paths;

	(void)argc;
	install_paths_find(&paths);
	argv[0] = "xtrace-diff";
	return become(command, paths.diff, argv);
}

static int run_baseline(const struct command *command, int argc, char **argv)
{
	struct install_paths paths;

	(void)argc;
	install_paths_find(&paths);
	argv[0] = "xtrace-baseline";
	return become(command, paths.baseline, argv);
}

const struct command command_diff = {
	.name = "diff",
	.arguments = "[OPTION]... BASE NEW",
	.summary = "Compares runs: what became slower, where, and is that sure",
	.details =
		"BASE and NEW are directories, logs, bench directories, profiles or baselines; "
		"several\n"
		"runs of a side are separated by commas. 'xtrace diff --help' lists the options.\n",
	.run = run_diff,
};

const struct command command_baseline = {
	.name = "baseline",
	.arguments = "save|update|show|prune [OPTION]... FILE [RUNS]",
	.summary = "Keeps the runs that later ones are compared with",
	.details = "FILE is made to be committed. 'xtrace baseline --help' says more.\n",
	.run = run_baseline,
};
