/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running program: where its parts are, what it was built from, and words for commands that the
 * user can paste into a shell.
 */
#ifndef XTRACE_PROGRAM_H
#define XTRACE_PROGRAM_H

#include <limits.h>
#include <stddef.h>

struct install_paths {
	char program[PATH_MAX];	  /* the running program */
	char top[PATH_MAX];	  /* contains bin/, lib/ and share/ */
	char injected[PATH_MAX];  /* libxtrace_inject.so */
	char simulator[PATH_MAX]; /* directory with the simulated libcuda.so.1 and libcupti.so */
};

/* Returns 0, -ENOENT if libxtrace_inject.so is missing, or another -errno. */
int install_paths_find(struct install_paths *paths);

/* The commit that this installation was built from. */
void version_commit(char *out, size_t out_bytes);

/* The path from the current directory. The caller frees it. NULL if memory ran out. */
char *absolute_path(const char *path);

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
