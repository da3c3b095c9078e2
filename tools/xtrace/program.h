/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running program: where its parts are, what it was built from, and words for commands that the
 * user can paste into a shell. Runs other programs as if the user had started them: they get the
 * same signals and the same output, and their exit status is available.
 */
#ifndef XTRACE_PROGRAM_H
#define XTRACE_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct install_paths {
	char program[PATH_MAX];	  /* the running program */
	char top[PATH_MAX];	  /* contains bin/, lib/ and share/ */
	char injected[PATH_MAX];  /* libxtrace_inject.so */
	char simulator[PATH_MAX]; /* directory with the simulated libcuda.so.1 and libcupti.so */
};

/* Returns 0, -ENOENT if libxtrace_inject.so is missing, or another -errno. */
int install_paths_find(struct install_paths *paths);

/* The value of a variable of the environment, or NULL if it is unset or empty. */
const char *user_setting(const char *variable);

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

struct environment_entry {
	const char *name;
	const char *value; /* NULL: unchanged */
};

/* How to run the program. */
struct child_care {
	int output; /* its stdout and stderr; -1: those of xtrace */
	/* Called every period_ns while it runs, more often at first. NULL: never. */
	void (*tick)(void *context);
	void *context;
	uint64_t period_ns;
	/*
	 * Called in the parent after fork. The child waits until it returns, then calls exec. NULL:
	 * never.
	 */
	void (*forked)(void *context, pid_t pid);
};

/*
 * Looks up the program as execvp() does. Returns 0, -ENOENT if it does not exist, -EACCES if it
 * cannot be executed, or -ENOEXEC if it is a 64-bit program for another processor.
 */
int child_find(const char *program);

/* Whether the program is statically linked, so that no library can be loaded into it. */
bool child_is_static(const char *program);

/*
 * Prints why child_find() or child_run() failed with this error. Returns the exit status of a shell
 * in this case.
 */
int child_cannot_run(const char *program, int error);

/*
 * The Python for scripts: XTRACE_INTERPRETER, or that of the virtual environment that xtrace was
 * installed into, or "python3". Valid until the next call.
 */
const char *child_python(const struct install_paths *paths);

/*
 * 'xtrace record train.py' runs 'python3 train.py' if the script is not executable. The result ends
 * with NULL, and the caller frees it, but not its elements. NULL: leave the command as it is.
 */
char **child_with_python(char **command, const struct install_paths *paths);

/*
 * Runs a command, forwards signals to it, and waits for it, but not for its children. command
 * ends with NULL. environment is added to that of xtrace and ends with a NULL name. Both
 * environment and care may be NULL. *status_out is a status from waitpid(). Returns 0, or -errno
 * if the command could not be started.
 */
int child_run(char *const *command, const struct environment_entry *environment,
	      const struct child_care *care, int *status_out);

#endif
