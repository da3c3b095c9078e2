/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/process_facts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES (16u << 10)

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void record_number(const struct sampled_process *process, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cpu_log_meta(process->log, key, text);
}

static void record_link(const struct sampled_process *process, const char *key, const char *name)
{
	char path[64], text[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", process->pid, name);
	length = readlink(path, text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	cpu_log_meta(process->log, key, text);
}

void process_facts_program(const struct sampled_process *process)
{
	char path[64], text[TEXT_BYTES];
	ssize_t length;

	record_link(process, "process.exe", "exe");
	record_link(process, "process.cwd", "cwd");
	snprintf(path, sizeof(path), "/proc/%d/cmdline", process->pid);
	length = proc_file_read(path, text, sizeof(text));
	for (ssize_t i = 0; i + 1 < length; i++)
		if (!text[i])
			text[i] = ' ';
	cpu_log_meta(process->log, "process.cmdline", length > 0 ? text : "");
}

/* Seconds since 1970, to hundredths, computed as the injected library does. */
static void record_start(const struct sampled_process *process)
{
	int64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK), hundredths;
	char text[40];

	hundredths = (uint64_t)(boot_ns / 10000000) + process->start_ticks * 100 / ticks_per_s;
	snprintf(text, sizeof(text), "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
	cpu_log_meta(process->log, "process.started", text);
}

static void record_host(const struct sampled_process *process)
{
	char text[256];
	struct utsname host;

	if (proc_file_read("/proc/sys/kernel/random/boot_id", text, sizeof(text)) > 0) {
		text[strcspn(text, "\n")] = '\0';
		cpu_log_meta(process->log, "host.boot", text);
	}
	if (uname(&host))
		return;
	cpu_log_meta(process->log, "host.name", host.nodename);
	snprintf(text, sizeof(text), "%s %s", host.sysname, host.release);
	cpu_log_meta(process->log, "host.kernel", text);
}

void process_facts_process(const struct sampled_process *process,
			   const struct sampling_facts *sampling)
{
	char path[64];
	struct stat status;

	cpu_log_meta(process->log, "xtrace.version", XTRACE_VERSION);
	cpu_log_meta(process->log, "log.kind", "cpu");
	record_number(process, "cpu.hz", sampling->hz);
	cpu_log_meta(process->log, "cpu.source", sampling->why_no_perf ? "proc" : "perf");
	if (sampling->why_no_perf)
		cpu_log_meta(process->log, "cpu.why", sampling->why_no_perf);
	else if (!sampling->sees_kernel)
		cpu_log_meta(process->log, "cpu.kernel", "estimated");
	if (sampling->why_no_memory)
		cpu_log_meta(process->log, "cpu.memory", sampling->why_no_memory);
	record_number(process, "process.id", (uint64_t)process->log_pid);
	record_number(process, "process.parent", (uint64_t)process->parent);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", process->pid);
	if (!stat(path, &status))
		record_number(process, "process.pid_namespace", status.st_ino);
	record_start(process);
	record_host(process);
	process_facts_program(process);
}

void process_facts_python(const struct sampled_process *process)
{
	cpu_log_meta(process->log, "python.version", python_process_version(process->python));
	cpu_log_meta(process->log, "python.path", python_process_path(process->python));
}

void process_facts_no_python(const struct sampled_process *process, const char *why)
{
	cpu_log_meta(process->log, "python.missing", why);
}

/* The last number of the line NSpid of a status file. 0: unknown. */
static pid_t innermost_id(const char *path)
{
	char text[TEXT_BYTES];
	const char *line, *end, *last;

	if (proc_file_read(path, text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	line += strlen("\nNSpid:");
	end = strchrnul(line, '\n');
	for (last = line; line < end; line++)
		if (*line == '\t' || *line == ' ')
			last = line;
	return (pid_t)strtol(last, NULL, 10);
}

bool process_facts_namespace(pid_t pid, pid_t *own_pid)
{
	struct stat own, other;
	char path[64];
	pid_t inner;

	*own_pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	if (stat("/proc/self/ns/pid", &own) || stat(path, &other) || own.st_ino == other.st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	inner = innermost_id(path);
	if (inner)
		*own_pid = inner;
	return true;
}

pid_t process_facts_own_tid(pid_t pid, pid_t tid)
{
	char path[64];
	pid_t inner;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	inner = innermost_id(path);
	return inner ? inner : tid;
}

uint64_t process_facts_start_ns(uint64_t start_ticks)
{
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	int64_t boot_ns = clock_ns(CLOCK_MONOTONIC) - clock_ns(CLOCK_BOOTTIME);
	int64_t start_ns = boot_ns + (int64_t)start_ticks * tick_ns + tick_ns / 2;

	return start_ns > 0 ? (uint64_t)start_ns : 0;
}

void process_facts_host(char *out, size_t out_bytes)
{
	if (gethostname(out, out_bytes) || !out[0])
		snprintf(out, out_bytes, "localhost");
	out[out_bytes - 1] = '\0';
	for (char *c = out; *c; c++)
		if (*c == '/' || (unsigned char)*c <= ' ')
			*c = '_';
}
