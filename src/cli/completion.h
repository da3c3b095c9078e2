/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completion, generated from the tables of commands and options.
 */
#ifndef XT_CLI_COMPLETION_H
#define XT_CLI_COMPLETION_H

/* Prints the script for "bash" or "zsh". Returns 0, or -EINVAL for another shell. */
int completion_print(const char *shell);

#endif
