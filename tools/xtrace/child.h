/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program as if it had been started without us: its signals, its output and its exit
 * status are its own.
 */
#ifndef XTRACE_CHILD_H
#define XTRACE_CHILD_H

struct environment_entry {
	const char *name;
	const char *value; /* NULL: as it is */
};

/*
 * Looks the program up as execvp() does. 0, -ENOENT if there is none, or -EACCES if what is there
 * cannot be executed.
 */
int child_find(const char *program);

/*
 * Runs command (which ends with NULL) with the additional environment (which ends with a name of
 * NULL), passes on the signals that others send us meanwhile, and waits for it, but not for what
 * it leaves behind. *status_out is as of waitpid(). 0, or -errno if it could not be started.
 */
int child_run(char *const *command, const struct environment_entry *environment, int *status_out);

/* The exit status that a shell would give for a status of waitpid(). */
int child_exit_status(int status);

#endif
