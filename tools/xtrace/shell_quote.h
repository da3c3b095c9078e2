/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for commands that the user can paste into a shell.
 */
#ifndef XTRACE_SHELL_QUOTE_H
#define XTRACE_SHELL_QUOTE_H

/*
 * Quotes a file name as one word that is not an option. The caller frees it. NULL if memory ran
 * out.
 */
char *shell_quote(const char *name);

/* Quotes any text as one word. The caller frees it. NULL if memory ran out. */
char *shell_quote_argument(const char *text);

/*
 * The command that runs this program: its name alone if the shell finds it, else as it was called.
 * The caller frees it. NULL if memory ran out.
 */
char *shell_own_name(void);

#endif
