/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for shells, written from the tables of commands and options, so that it knows just what
 * they know.
 */
#ifndef XTRACE_COMPLETION_H
#define XTRACE_COMPLETION_H

#include <stddef.h>

#include "command.h"

/* To stdout. 0, or -EINVAL if the shell is not known. */
int completion_print(const char *shell, const struct command *const *commands, size_t count);

#endif
