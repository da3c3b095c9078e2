/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace sample: samples the CPU of a running process until it ends. The injected library starts it
 * for XTRACE_CPU.
 */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu_sampling.h"
#include "data_dir.h"
#include "install_paths.h"
#include "log/base/sampler_socket.h"

#define POLL_MS 100 /* if the kernel does not tell when a process ends */

struct request {
	const char *output;
	bool is_background;
	struct cpu_sampling cpu;
	struct install_paths paths;
	pid_t pid;
	int claim; /* descriptor of sampler_socket_claim() */
};

static const struct option_row option_rows[] = {
	{"output", 'o', .value = "DIR", .expected = "a name that is not empty",
	 .help = "Write the samples to DIR, the trace directory of the process "
		 "(default: " DEFAULT_DATA_DIR ")",
	 .apply = option_text, .offset = offsetof(struct request, output)},
	{"hz", .value = "HZ",
	 .help = "Sample each thread HZ times per second (default: " CPU_SAMPLING_HZ ")",
	 .apply = option_number, .offset = offsetof(struct request, cpu.hz), .min = 1,
	 .max = CPU_SAMPLING_HZ_MAX, .expected = "a number of samples per second from 1 to 1000"},
	{"background", .is_hidden = true,
	 .help = "Answer in one line on stdout, then leave the terminal and all open files",
	 .apply = option_flag, .offset = offsetof(struct request, is_background)},
	{0},
};

static void list_options(struct option_list *list)
{
	option_list_add(list, option_rows);
}

static int parse(struct request *request, const struct command *command, int argc, char **argv)
{
	struct option_list list;
	char *end;
	long pid;
	int status, count;

	command_list_options(command, &list);
	status = command_parse(command, &list, request, argc, argv, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (count > 1)
		return command_unexpected(argv[2]);
	if (!count) {
		print_error("no process given: usage: xtrace sample [OPTION]... PID");
		return STATUS_FAILED;
	}
	errno = 0;
	pid = strtol(argv[1], &end, 10);
	if (*end || errno || pid < 1 || pid > INT_MAX) {
		print_error("'%s' is not the id of a process", argv[1]);
		return STATUS_FAILED;
	}
	request->pid = (pid_t)pid;
	return COMMAND_GO_ON;
}

/* The program's files must not stay open in this process. Then waits for its permission. */
static void leave_program(void)
{
	sigset_t none;
	char byte;

	if (syscall(SYS_close_range, STDERR_FILENO, ~0u, 0))
		for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd >= STDERR_FILENO; fd--)
			close(fd);
	open("/dev/null", O_RDWR); /* becomes stderr */
	setsid();
	(void)!chdir("/"); /* does not keep a file system busy */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
}

/* Tells the program that sampling has begun, or why not, and closes the last files of it. */
static void answer(const char *text)
{
	dprintf(STDOUT_FILENO, "%s\n", text);
	dup2(STDERR_FILENO, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
}

static int fail(const struct request *request, int error)
{
	char text[256];

	snprintf(text, sizeof(text), "cannot sample the CPU of process %d: %s", request->pid,
		 error == -EADDRINUSE ? "it is sampled into this directory already"
		 : error == -ESRCH    ? "there is no such process"
		 : error == -ENOSYS   ? "no /proc/PID/schedstat"
				      : strerror(-error));
	if (request->is_background)
		answer(text);
	else
		print_error("%s", text);
	return STATUS_FAILED;
}

/* Returns when the process has ended, or a signal asked this one to end. */
static void wait_for_end(const struct request *request, int signals)
{
	int process = (int)syscall(SYS_pidfd_open, request->pid, 0);
	struct pollfd events[] = {
		{process, POLLIN, 0}, {signals, POLLIN, 0}, {request->claim, POLLIN, 0}};

	for (;;) {
		int count = poll(events, 3, process < 0 ? POLL_MS : -1);

		if (count > 0 && (events[0].revents || events[1].revents))
			break;
		if (count > 0 && events[2].revents)
			sampler_socket_drain(request->claim);
		if (process < 0 && kill(request->pid, 0) && errno == ESRCH)
			break;
	}
	if (process >= 0)
		close(process);
}

static int sample(struct request *request)
{
	struct cpu_sampling *cpu = &request->cpu;
	sigset_t ends;
	char name[32];
	int signals;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC);
	if (signals < 0)
		return fail(request, -errno);
	cpu_sampling_start(cpu, request->pid);
	if (cpu->error) {
		close(signals);
		return fail(request, cpu->error);
	}
	if (request->is_background)
		answer("ready");
	else
		print_note("sampling process %d until it ends, or until Ctrl-C", request->pid);
	wait_for_end(request, signals);
	cpu_sampling_stop(cpu);
	close(signals);
	if (request->is_background)
		return STATUS_OK;
	snprintf(name, sizeof(name), "process %d", request->pid);
	cpu_sampling_report(cpu, name);
	return STATUS_OK;
}

static int run_sample(const struct command *command, int argc, char **argv)
{
	struct request request = {.output = DEFAULT_DATA_DIR, .claim = -1};
	char *data_dir = NULL;
	int status, error;

	request.cpu = (struct cpu_sampling){
		.hz = 99, .is_running = true, .paths = &request.paths, .data_dir = &data_dir};
	status = parse(&request, command, argc, argv);
	if (status != COMMAND_GO_ON)
		return status;
	if (request.is_background)
		leave_program();
	install_paths_find(&request.paths); /* without libunwind there are still Python frames */
	data_dir = (char *)(uintptr_t)request.output;
	if (mkdir(data_dir, 0700) && errno != EEXIST)
		return fail(&request, -errno);
	request.claim = error = sampler_socket_claim(request.pid, data_dir);
	status = error < 0 ? fail(&request, error) : sample(&request);
	if (request.claim >= 0)
		close(request.claim);
	return status;
}

static const char details[] =
	"  xtrace sample -o trace 1234\n\n"
	"Its child processes are sampled, too. Stacks of running native code are missing: only\n"
	"'xtrace record --cpu' can record them. To add the names of functions afterwards, on the\n"
	"same machine: xtrace merge --embed-symbols DIR\n";

const struct command command_sample = {
	.name = "sample",
	.arguments = "[OPTION]... PID",
	.summary = "Sample the CPU of a running process that xtrace records",
	.details = details,
	.operand = "PID",
	.list_options = list_options,
	.run = run_sample,
};
