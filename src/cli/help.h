/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of --help.
 */
#ifndef XT_CLI_HELP_H
#define XT_CLI_HELP_H

#include "cli/command.h"

/* Prints the usage, options and details of a command. list: from command_list_options(). */
void help_print(const struct command *command, const struct option_list *list);

#endif
