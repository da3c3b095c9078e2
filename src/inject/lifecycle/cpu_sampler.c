/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler is a grandchild whose parent ends at once. Both share the memory of this process
 * until the sampler calls exec, as after vfork(). Copying the page tables of a large process would
 * take long. The child between has no exit signal, so that the program's own wait() never sees it.
 */
#include "inject/lifecycle/cpu_sampler.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/writer/writer_thread.h"
#include "log/base/regular_file.h"
#include "log/base/sampler_socket.h"

#define STACK_BYTES   (64u << 10) /* of each of the two */
#define READY_TIME_NS UINT64_C(2000000000)

#define END_TIME_MS 200

static pid_t permitted_pid; /* may read the memory of this process; 0: none */
static struct xt_guarded_fd own_sampler = {.fd = -1}; /* to the one that this process started */

/* Relative to this library: a tarball or wheel, lib/ARCHITECTURE, and the Debian package. */
static const char *const programs[] = {"../bin/xtrace", "../../bin/xtrace", "../../../bin/xtrace"};

struct launch {
	char program[2 * PATH_MAX];
	char *arguments[16], *environment[2];
	int output; /* becomes its stdin and stdout */
	char *stacks;
	pid_t pid;
	int error; /* errno of clone() or execve() */
};

/* In the sampler-to-be, which shares this memory. */
static int run_program(void *context)
{
	struct launch *launch = context;

	if (dup2(launch->output, STDIN_FILENO) >= 0 && dup2(launch->output, STDOUT_FILENO) >= 0)
		execve(launch->program, launch->arguments, launch->environment);
	launch->error = errno;
	syscall(SYS_exit_group, 127);
	return 0;
}

/* In the child between. */
static int start_program(void *context)
{
	struct launch *launch = context;

	launch->pid = clone(run_program, launch->stacks + (size_t)2 * STACK_BYTES,
			    CLONE_VM | CLONE_VFORK | SIGCHLD, launch);
	if (launch->pid < 0)
		launch->error = errno;
	syscall(SYS_exit_group, 0);
	return 0;
}

/* Sets launch->pid. Returns 0 or -errno. */
static int start(struct launch *launch)
{
	sigset_t all, mask;
	pid_t between;
	int error = 0;

	launch->stacks = mmap(NULL, (size_t)2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (launch->stacks == MAP_FAILED)
		return -ENOMEM;
	/* A handler of the program must not run in a child that shares its memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	between =
		clone(start_program, launch->stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, launch);
	if (between < 0)
		error = -errno;
	else
		while (waitpid(between, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	munmap(launch->stacks, (size_t)2 * STACK_BYTES);
	return error ? error : -launch->error;
}

/* Reads one line, without its end. Empty if it does not come in time. */
static void read_line(int fd, char *line, size_t line_bytes)
{
	uint64_t end_ns = monotonic_ns() + READY_TIME_NS, now_ns;
	size_t length = 0;

	while (length + 1 < line_bytes && (now_ns = monotonic_ns()) < end_ns) {
		struct pollfd input = {fd, POLLIN, 0};
		ssize_t got;

		if (poll(&input, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		got = recv(fd, line + length, line_bytes - 1 - length, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
		if (line[length - 1] == '\n')
			break;
	}
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

static bool find_program(const struct config *config, char *out, size_t out_bytes)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		int length = snprintf(out, out_bytes, "%s/%s", config->library_dir, programs[i]);

		if (length < (int)out_bytes && !access(out, X_OK))
			return true;
	}
	return false;
}

/* A security module may allow that to parents only (Yama's ptrace_scope 1). */
static void permit(pid_t sampler)
{
	prctl(PR_SET_PTRACER, sampler, 0, 0, 0);
	permitted_pid = sampler;
}

/*
 * Starts it with one end of a socket, and stores what it says. It asks for permission only if it
 * needs that, because the program may have given it to another process. Returns 0 or -errno.
 */
static int start_and_ask(struct launch *launch, char *answer, size_t answer_bytes)
{
	int ends[2], error;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	launch->output = ends[1];
	error = start(launch);
	close(ends[1]);
	if (!error)
		read_line(ends[0], answer, answer_bytes);
	if (!error && !strcmp(answer, SAMPLER_ASKS)) {
		permit(launch->pid);
		send(ends[0], "\n", 1, MSG_NOSIGNAL);
		read_line(ends[0], answer, answer_bytes);
	}
	close(ends[0]);
	return error;
}

/* Orphans become children of this process, so that it would wait for its sampler. */
static bool adopts_orphans(void)
{
	int is_subreaper = 0;

	prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0);
	return is_subreaper || getpid() == 1;
}

/* Prints what the sampler said, or why it said nothing. */
static void report_answer(const struct launch *launch, int error, const char *answer)
{
	if (error || !answer[0])
		log_message("cannot sample the CPU: cannot run %s: %s", launch->program,
			    error ? strerror(-error) : "it did not answer");
	else if (strncmp(answer, SAMPLER_READY, strlen(SAMPLER_READY)) != 0)
		log_message("cannot sample the CPU: %s",
			    strncmp(answer, SAMPLER_FAILS, strlen(SAMPLER_FAILS))
				    ? "bin/xtrace is not the one of this library"
				    : answer + strlen(SAMPLER_FAILS));
	else if (answer[strlen(SAMPLER_READY)])
		log_message("%s", answer + strlen(SAMPLER_READY));
}

/* The program may forbid to open a socket later. */
static void connect_to_own(const struct config *config)
{
	int fd = sampler_socket_connect(getpid(), config->data_dir, END_TIME_MS);

	if (fd >= 0)
		xt_guarded_fd_take(&own_sampler, fd);
}

/* On the writer thread. */
static void end_own(void)
{
	if (xt_guarded_fd_is_ours(&own_sampler))
		sampler_socket_end(own_sampler.fd);
}

static void launch_sampler(const struct config *config)
{
	static char library_path[2 * PATH_MAX];
	const char *libraries = setting("LD_LIBRARY_PATH");
	char pid[16], hz[16], answer[512] = "";
	struct launch launch = {.arguments = {launch.program, "sample", "--background", "--hz", hz,
					      "--output", (char *)(uintptr_t)config->data_dir,
					      pid}};
	int error;

	if (adopts_orphans()) {
		log_message("cannot sample the CPU: this program is process 1 or a subreaper, so "
			    "the sampler would be its child; docker run --init avoids that");
		return;
	}
	if (!find_program(config, launch.program, sizeof(launch.program))) {
		log_message("cannot sample the CPU: there is no bin/xtrace next to %s",
			    config->library_dir);
		return;
	}
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(hz, sizeof(hz), "%u", config->cpu_hz);
	if (libraries && snprintf(library_path, sizeof(library_path), "LD_LIBRARY_PATH=%s",
				  libraries) < (int)sizeof(library_path))
		launch.environment[0] = library_path;
	error = start_and_ask(&launch, answer, sizeof(answer));
	debug_log(DEBUG_PROCESS, "%s as process %d: %s", launch.program, launch.pid,
		  error ? strerror(-error) : answer);
	report_answer(&launch, error, answer);
	if (!error && !strncmp(answer, SAMPLER_READY, strlen(SAMPLER_READY)))
		connect_to_own(config);
	else
		permitted_pid = 0;
}

void cpu_sampler_start(const struct config *config)
{
	pid_t other;

	if (!config->cpu_hz)
		return;
	other = sampler_socket_find(getpid(), config->data_dir);
	writer_thread_at_end(end_own);
	if (!other)
		launch_sampler(config);
	else if (sampler_socket_needs_permit())
		permit(other);
}

void cpu_sampler_in_child(void)
{
	int saved_errno = errno;

	xt_guarded_fd_close(&own_sampler);
	if (permitted_pid)
		prctl(PR_SET_PTRACER, permitted_pid, 0, 0, 0);
	errno = saved_errno;
}
