/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and waits for it; see child.h.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

#define PASSED_ON_COUNT (sizeof(passed_on) / sizeof(passed_on[0]))

static _Atomic pid_t child_pid; /* 0 while there is none; read by the handler */

/*
 * What the terminal sends goes to the whole foreground process group, so the child has it already;
 * what a process sent to us is meant for the child.
 */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)context;
	if (child_pid > 0 && info->si_code <= 0)
		kill(child_pid, signal);
	errno = saved_errno;
}

static int probe(const char *path)
{
	struct stat info;

	if (stat(path, &info))
		return errno == EACCES ? -EACCES : -ENOENT;
	return S_ISREG(info.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int child_find(const char *program)
{
	const char *folders = getenv("PATH"), *end;
	int error = -ENOENT;

	if (strchr(program, '/'))
		return probe(program);
	if (!folders)
		folders = "/bin:/usr/bin";
	for (;; folders = end + 1) {
		char *path = NULL;
		int found;

		end = strchrnul(folders, ':');
		/* an empty folder is the current one */
		if (asprintf(&path, "%.*s/%s", end == folders ? 1 : (int)(end - folders),
			     end == folders ? "." : folders, program) < 0)
			return -ENOMEM;
		found = probe(path);
		free(path);
		if (!found)
			return 0;
		if (found == -EACCES)
			error = found;
		if (!*end)
			return error;
	}
}

/* Only in the child. Comes back only on failure. */
static void start(char *const *command, const struct environment_entry *environment, int report)
{
	int error;

	for (; environment->name; environment++)
		if (environment->value && setenv(environment->name, environment->value, 1))
			goto failed;
	execvp(command[0], command);
failed:
	error = errno;
	/* If even this fails, the parent takes it for a program that ended with 127. */
	if (write(report, &error, sizeof(error)) != sizeof(error))
		_exit(STATUS_NOT_FOUND);
	_exit(STATUS_NOT_FOUND);
}

/* Signals that we ignore, as nohup has it, stay ignored. */
static void install_handlers(struct sigaction *before)
{
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

	for (size_t i = 0; i < PASSED_ON_COUNT; i++) {
		sigaction(passed_on[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(passed_on[i], &action, NULL);
	}
}

static void restore_handlers(const struct sigaction *before)
{
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		sigaction(passed_on[i], &before[i], NULL);
}

int child_run(char *const *command, const struct environment_entry *environment, int *status_out)
{
	struct sigaction before[PASSED_ON_COUNT];
	sigset_t all, mask;
	int report[2], error = 0;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return -errno;
	/* No signal may come between the fork and the handler that knows the child. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &mask, NULL);
		close(report[0]);
		start(command, environment, report[1]);
	}
	if (pid < 0)
		error = -errno;
	close(report[1]);
	child_pid = pid;
	install_handlers(before);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid > 0) {
		int failure;

		if (read(report[0], &failure, sizeof(failure)) == sizeof(failure))
			error = -failure;
		while (waitpid(pid, status_out, 0) < 0 && errno == EINTR)
			;
	}
	child_pid = 0;
	restore_handlers(before);
	close(report[0]);
	return error;
}

int child_exit_status(int status)
{
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
