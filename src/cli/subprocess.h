/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a command of xtrace in a process of its own, so that its crash does not end the caller,
 * and other programs.
 */
#ifndef XT_CLI_SUBPROCESS_H
#define XT_CLI_SUBPROCESS_H

#include <sys/types.h>

/*
 * Forks and runs the command there. arguments[0] is replaced by the name. The list ends with NULL.
 * stdout goes to output, or to stdout if output is -1. The caller must have one thread. Returns the
 * process id or -errno.
 */
pid_t subprocess_start(const char *command, const char *const *arguments, int output);

/*
 * Runs another program, found as execvp() does, without a shell. arguments[0] is its name. The
 * program reads stdin from input, or nothing if input is -1. Its stdout goes to output. Its stderr
 * is discarded. Returns the process id or -errno. The exit status is STATUS_NOT_FOUND if the
 * program is missing.
 */
pid_t subprocess_start_program(const char *const *arguments, int input, int output);

/* Waits. Returns the exit status as a shell gives it: 128 + n if signal n ended the process. */
int subprocess_wait(pid_t pid);

/* Both. Returns STATUS_NOT_EXECUTABLE after an error message if it cannot fork. */
int subprocess_run(const char *command, const char *const *arguments, int output);

/* The exit status that a shell gives for a status from waitpid(). */
int subprocess_exit_status(int status);

#endif
