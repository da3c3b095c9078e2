/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands in processes of their own.
 */
#include "cli/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/message.h"

static int run_command(const char *name, const char *const *arguments)
{
	const struct command *command = command_find(name);
	char **copy;
	int argc = 0, status;

	if (!command)
		return STATUS_NOT_FOUND;
	while (arguments[argc])
		argc++;
	/* The parser reorders the array. */
	copy = calloc((size_t)argc + 1, sizeof(*copy));
	if (!copy)
		return STATUS_FAILED;
	memcpy(copy, arguments, (size_t)argc * sizeof(*copy));
	status = command->run(command, argc, copy);
	free(copy);
	fflush(stdout);
	return status;
}

pid_t subprocess_start(const char *command, const char *const *arguments, int output)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	if (output >= 0 && dup2(output, STDOUT_FILENO) < 0)
		_exit(STATUS_NOT_EXECUTABLE);
	_exit(run_command(command, arguments));
}

pid_t subprocess_start_program(const char *const *arguments, int input, int output)
{
	pid_t pid;
	int null;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0 && dup2(input >= 0 ? input : null, STDIN_FILENO) >= 0 &&
	    dup2(output, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		execvp(arguments[0], (char *const *)arguments);
	_exit(STATUS_NOT_FOUND);
}

int subprocess_exit_status(int status)
{
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int subprocess_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_NOT_EXECUTABLE;
	return subprocess_exit_status(status);
}

int subprocess_run(const char *command, const char *const *arguments, int output)
{
	pid_t pid = subprocess_start(command, arguments, output);

	if (pid > 0)
		return subprocess_wait(pid);
	print_error("cannot start a process for 'xtrace %s': %s", command, strerror(-pid));
	return STATUS_NOT_EXECUTABLE;
}
