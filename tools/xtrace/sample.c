/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the threads of a recorded program for xtrace record --cpu, and xtrace sample: samples a
 * running process until it ends. The injected library starts that for XTRACE_CPU.
 */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "commands.h"
#include "data_dir.h"
#include "log/base/new_syscalls.h"
#include "log/base/number_format.h"
#include "log/base/sampler_socket.h"
#include "processes.h"

/* Less missing CPU time is not reported: the last moments of a program are never sampled. */
#define MISSING_NS	50000000
#define MISSING_PERCENT 5

/* CPU time of the children that xtrace waited for, and of theirs. */
static uint64_t children_cpu_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage))
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

void cpu_sampling_start(void *context, pid_t pid)
{
	struct cpu_sampling *sampling = context;
	char library_dir[PATH_MAX];

	sampling->cpu_ns = children_cpu_ns();
	/* The folder of the injected library has the copy of libunwind that comes with xtrace. */
	snprintf(library_dir, sizeof(library_dir), "%s", sampling->paths->injected);
	dirname(library_dir);
	sampling->error =
		sampler_start(&sampling->sampler,
			      &(struct sampler_options){.root = pid,
							.is_running = sampling->is_running,
							.hz = sampling->hz,
							.ask_permission = sampling->ask_permission,
							.data_dir = *sampling->data_dir,
							.library_dir = library_dir});
}

void cpu_sampling_stop(struct cpu_sampling *sampling)
{
	if (sampling->sampler)
		sampler_stop(sampling->sampler, &sampling->result);
	sampling->cpu_ns = children_cpu_ns() - sampling->cpu_ns;
	sampling->sampler = NULL;
}

static const char *plural(uint64_t count, const char *ending)
{
	return count == 1 ? "" : ending;
}

static void report_nothing(const struct sampler_result *result, const char *program)
{
	if (result->is_untraceable)
		print_note("sampled nothing: '%s' may not be traced (setuid, or not readable)",
			   program);
	else
		print_note("sampled nothing: '%s' ended before the first sample", program);
}

static void report_counts(const struct sampler_result *result)
{
	char processes[COUNT_BYTES], threads[COUNT_BYTES], samples[COUNT_BYTES];

	print_note("sampled %s process%s, %s thread%s, %s sample%s",
		   format_count(processes, result->process_count),
		   plural(result->process_count, "es"), format_count(threads, result->thread_count),
		   plural(result->thread_count, "s"),
		   format_count(samples, result->observation_count),
		   plural(result->observation_count, "s"));
}

static void report_losses(const struct cpu_sampling *sampling)
{
	const struct sampler_result *result = &sampling->result;
	char processes[COUNT_BYTES], limit[COUNT_BYTES];

	if (result->lost_processes)
		print_note("%s process%s not sampled: limit of %s CPU logs reached%s",
			   format_count(processes, result->lost_processes),
			   plural(result->lost_processes, "es"),
			   format_count(limit, result->log_limit),
			   result->log_limit < SAMPLER_LOGS_MAX ? "; raise 'ulimit -Hn'" : "");
	if (sampling->cpu_ns > result->run_ns + MISSING_NS &&
	    (sampling->cpu_ns - result->run_ns) * 100 > sampling->cpu_ns * MISSING_PERCENT)
		print_note("%.0f %% of the CPU time is missing: it was spent by threads and "
			   "processes that ended before they were sampled",
			   100.0 * (double)(sampling->cpu_ns - result->run_ns) /
				   (double)sampling->cpu_ns);
	if (result->write_error)
		print_error("cannot write all CPU logs in '%s': %s", *sampling->data_dir,
			    strerror(-result->write_error));
}

void cpu_sampling_report(const struct cpu_sampling *sampling, const char *program)
{
	const struct sampler_result *result = &sampling->result;

	if (!sampling->hz)
		return;
	if (sampling->error) {
		print_error("cannot sample the CPU: %s", sampling->error == -ENOSYS
								 ? "no /proc/PID/schedstat"
								 : strerror(-sampling->error));
		return;
	}
	if (!result->observation_count) {
		report_nothing(result, program);
		return;
	}
	report_counts(result);
	report_losses(sampling);
	if (result->why_no_memory[0])
		print_note("Python lines and waits are missing: %s", result->why_no_memory);
	if (result->why_no_perf[0])
		print_note("CPU stacks of running native code are missing: %s",
			   result->why_no_perf);
}

#define POLL_MS 100 /* if the kernel does not tell when a process ends */

struct request {
	const char *output;
	bool is_background;
	struct cpu_sampling cpu;
	struct install_paths paths;
	pid_t pid;
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

static int parse(struct request *request, const struct command *command, int argc, char **argv)
{
	int count, status = command_parse(command, NULL, request, argc, argv, 1, &count);

	if (status != COMMAND_GO_ON)
		return status;
	request->pid = process_parse(argv[1]);
	return request->pid ? COMMAND_GO_ON : STATUS_FAILED;
}

/* The program may have pinned its thread, or made it real-time. Its sampler inherits that. */
static void reset_scheduling(void)
{
	const struct sched_param normal = {0};
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	sched_setscheduler(0, SCHED_OTHER, &normal);
	setpriority(PRIO_PROCESS, 0, 0);
	sched_setaffinity(0, sizeof(all), &all); /* the kernel keeps to the cpuset */
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	signal(SIGPIPE, SIG_IGN); /* the program may have gone on without an answer */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The program's files must not stay open in this process, but for stdin and stdout, its socket. */
static void leave_program(void)
{
	reset_signals();
	if (syscall(SYS_close_range, STDERR_FILENO, ~0u, 0))
		for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd >= STDERR_FILENO; fd--)
			close(fd);
	open("/dev/null", O_RDWR); /* becomes stderr */
	setsid();
	(void)!chdir("/"); /* does not keep a file system busy */
	reset_scheduling();
}

/* Tells the program something. False if it no longer listens. */
static bool tell(const char *begin, const char *text)
{
	return dprintf(STDOUT_FILENO, "%s%s\n", begin, text) > 0;
}

static void ask_permission(void)
{
	char byte;

	if (tell(SAMPLER_ASKS, ""))
		while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
			;
}

/* Tells the program that sampling has begun. False if it no longer waits for that. */
static bool tell_ready(const struct sampler *sampler)
{
	const char *why = sampler_why_no_memory(sampler);
	char note[SAMPLER_WHY_BYTES + 64] = "";
	bool is_heard;

	if (*why)
		snprintf(note, sizeof(note), ", but Python lines and waits are missing: %s", why);
	is_heard = tell(SAMPLER_READY, note);
	dup2(STDERR_FILENO, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	return is_heard;
}

static int fail(const struct request *request, int error)
{
	const char *why = error == -EADDRINUSE ? "it is sampled into this directory already"
			  : error == -ESRCH    ? "there is no such process"
			  : error == -ENOSYS   ? "no /proc/PID/schedstat"
					       : strerror(-error);

	if (request->is_background)
		tell(SAMPLER_FAILS, why);
	else
		print_error("cannot sample the CPU of process %d: %s", request->pid, why);
	return STATUS_FAILED;
}

/* Returns when the process has ended, or it or a signal asked this one to end. */
static void wait_for_end(const struct request *request, int signals)
{
	int process = (int)syscall(SYS_pidfd_open, request->pid, 0);
	struct pollfd events[] = {{process, POLLIN, 0},
				  {signals, POLLIN, 0},
				  {sampler_end_descriptor(request->cpu.sampler), POLLIN, 0}};

	while (poll(events, 3, process < 0 ? POLL_MS : -1) <= 0)
		if (process < 0 && kill(request->pid, 0) && errno == ESRCH)
			break;
	if (process >= 0)
		close(process);
}

/* The samples belong to a recording of the process. */
static void note_missing_log(const struct request *request)
{
	char *pattern;
	glob_t logs;

	if (asprintf(&pattern, "%s/*.%d*" DATA_DIR_LOG_SUFFIX, request->output, request->pid) < 0)
		return;
	if (glob(pattern, GLOB_NOSORT, NULL, &logs) == GLOB_NOMATCH)
		print_note("'%s' has no log of process %d: its GPU work is recorded elsewhere, or "
			   "not at all",
			   request->output, request->pid);
	else
		globfree(&logs);
	free(pattern);
}

static void report_start(const struct request *request)
{
	const char *why = sampler_why_no_memory(request->cpu.sampler);

	note_missing_log(request);
	print_note("sampling process %d until it ends, or until Ctrl-C", request->pid);
	if (*why)
		print_note("Python lines and waits are missing: %s", why);
}

/* A descriptor for the signals that end this process, or -errno. */
static int open_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

static int sample(struct request *request)
{
	struct cpu_sampling *cpu = &request->cpu;
	int signals = open_signals();
	bool is_wanted = true;
	char name[32];

	if (signals < 0)
		return fail(request, -errno);
	cpu_sampling_start(cpu, request->pid);
	if (cpu->error) {
		close(signals);
		return fail(request, cpu->error);
	}
	if (request->is_background)
		is_wanted = tell_ready(cpu->sampler);
	else
		report_start(request);
	if (is_wanted)
		wait_for_end(request, signals);
	cpu_sampling_stop(cpu);
	close(signals);
	if (request->is_background)
		return STATUS_OK;
	cpu->result.why_no_memory[0] = '\0'; /* was printed at the start */
	snprintf(name, sizeof(name), "process %d", request->pid);
	cpu_sampling_report(cpu, name);
	return cpu->result.write_error ? STATUS_FAILED : STATUS_OK;
}

/* Returns an exit status. Prints an error unless it is STATUS_OK. */
static int make_directory(const struct request *request)
{
	char why[SAMPLER_WHY_BYTES];
	int fd = -1;

	if (kill(request->pid, 0) && errno == ESRCH)
		return fail(request, -ESRCH);
	if (!mkdir(request->output, 0700) || errno == EEXIST)
		fd = open(request->output, O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !faccessat(fd, ".", W_OK | X_OK, AT_EACCESS)) {
		close(fd);
		return STATUS_OK;
	}
	snprintf(why, sizeof(why), "cannot write to the directory '%s': %s", request->output,
		 strerror(errno));
	if (fd >= 0)
		close(fd);
	if (request->is_background)
		tell(SAMPLER_FAILS, why);
	else
		print_error("%s", why);
	return STATUS_FAILED;
}

static int run_sample(const struct command *command, int argc, char **argv)
{
	struct request request = {.output = DEFAULT_DATA_DIR};
	char *data_dir = NULL;
	int status;

	request.cpu = (struct cpu_sampling){.hz = (unsigned)atoi(CPU_SAMPLING_HZ),
					    .is_running = true,
					    .paths = &request.paths,
					    .data_dir = &data_dir};
	status = parse(&request, command, argc, argv);
	if (status != COMMAND_GO_ON)
		return status;
	if (request.is_background) {
		leave_program();
		request.cpu.ask_permission = ask_permission;
	}
	install_paths_find(&request.paths); /* without libunwind there are still Python frames */
	data_dir = (char *)(uintptr_t)request.output;
	status = make_directory(&request);
	return status ? status : sample(&request);
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
	.needed = "process",
	.options = option_rows,
	.run = run_sample,
};
