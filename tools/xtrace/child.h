/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program as if it had been started without us: its signals, its output and its exit
 * status are its own.
 */
#ifndef XTRACE_CHILD_H
#define XTRACE_CHILD_H

#include <stdint.h>

struct environment_entry {
	const char *name;
	const char *value; /* NULL: as it is */
};

/* What else is done with it. */
struct child_care {
	int output; /* where its stdout and stderr go; -1: where ours do */
	/* Called every period_ns while it runs, at first more often; NULL: never. */
	void (*tick)(void *context);
	void *context;
	uint64_t period_ns;
};

/*
 * Looks the program up as execvp() does. 0, -ENOENT if there is none, or -EACCES if what is there
 * cannot be executed.
 */
int child_find(const char *program);

/*
 * Runs command (which ends with NULL) with the additional environment (which ends with a name of
 * NULL), passes on the signals that others send us meanwhile, and waits for it, but not for what
 * it leaves behind. No environment and no care are NULL. *status_out is as of waitpid(). 0, or
 * -errno if it could not be started.
 */
int child_run(char *const *command, const struct environment_entry *environment,
	      const struct child_care *care, int *status_out);

#endif
