/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/refusal.h"

#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/process_read.h"

int refuse(const struct why *why, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, why->bytes, format, args);
	va_end(args);
	return error;
}

bool proc_status_read(struct proc_status *status, pid_t id)
{
	return proc_file_read(PROC_PATH("%d/status", id), status->text, sizeof(status->text)) > 0;
}

const char *proc_status_text(const struct proc_status *status, const char *name)
{
	size_t length = strlen(name);
	const char *line = status->text;

	while (line && (strncmp(line, name, length) != 0 || line[length] != ':')) {
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return line ? line + length + 1 + strspn(line + length + 1, " \t") : NULL;
}

long proc_status_number(const struct proc_status *status, const char *name, int index)
{
	const char *at = proc_status_text(status, name);
	long number = -1;

	for (int i = 0; at && i <= index; i++) {
		char *end;

		number = strtol(at, &end, 10);
		if (end == at)
			return -1;
		at = end;
	}
	return number;
}

/* A hexadecimal field; 0 if there is none. */
static uint64_t proc_status_hex(const struct proc_status *status, const char *name)
{
	const char *text = proc_status_text(status, name);

	return text ? strtoull(text, NULL, 16) : 0;
}

uint64_t proc_status_deliverable(const struct proc_status *status)
{
	return (proc_status_hex(status, "SigPnd") | proc_status_hex(status, "ShdPnd")) &
	       ~proc_status_hex(status, "SigBlk") & ~proc_status_hex(status, "SigIgn");
}

bool proc_is_other_namespace(pid_t pid, const char *name)
{
	struct stat own, other;

	if (stat(PROC_PATH("self/ns/%s", name), &own))
		return false;
	return !stat(PROC_PATH("%d/ns/%s", pid, name), &other) && other.st_ino != own.st_ino;
}

#define YAMA_PATH "/proc/sys/kernel/yama/ptrace_scope"

/* A child asks to be traced, which only a seccomp filter can refuse. */
static bool may_trace_nothing(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status);
}

void ptrace_facts_read(struct ptrace_facts *facts, pid_t pid)
{
	struct proc_status other, own;
	char text[32];
	struct stat folder;

	*facts = (struct ptrace_facts){.yama_scope = -1};
	facts->is_blocked = may_trace_nothing();
	facts->is_other_user_space = proc_is_other_namespace(pid, "user");
	if (proc_file_read(YAMA_PATH, text, sizeof(text)) > 0)
		facts->yama_scope = atoi(text);
	if (!proc_status_read(&other, pid) || !proc_status_read(&own, getpid()))
		return;
	facts->is_capable = proc_status_hex(&own, "CapEff") >> CAP_SYS_PTRACE & 1;
	facts->extra_capabilities =
		proc_status_hex(&other, "CapPrm") & ~proc_status_hex(&own, "CapEff");
	/* Files of such a process belong to root. */
	facts->is_undumpable = !stat(PROC_PATH("%d/maps", pid), &folder) &&
			       folder.st_uid != (uid_t)proc_status_number(&other, "Uid", 1);
}

/* By their numbers in linux/capability.h. */
static const char *const capability_names[] = {
	/* 0 */
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
	"SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
	"IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE",
	/* 20 */
	"SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME",
	"SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
	"PERFMON", "BPF", "CHECKPOINT_RESTORE"};

static void list_capabilities(uint64_t set, char *text, size_t text_bytes)
{
	char *at = text, *end = text + text_bytes;

	for (unsigned c = 0; c < 64 && at < end; c++)
		if (set >> c & 1)
			at += c < sizeof(capability_names) / sizeof(*capability_names)
				      ? snprintf(at, (size_t)(end - at), "%sCAP_%s",
						 at == text ? "" : ", ", capability_names[c])
				      : snprintf(at, (size_t)(end - at), "%s%u",
						 at == text ? "" : ", ", c);
}

void ptrace_refusal_explain(const struct ptrace_facts *facts, char *why, size_t why_bytes)
{
	char extra[512] = "";

	list_capabilities(facts->extra_capabilities, extra, sizeof(extra));
	/* Scopes 2 and 3 make the attempt for is_blocked fail, too. */
	if (facts->yama_scope >= 3)
		snprintf(why, why_bytes,
			 "kernel.yama.ptrace_scope is 3, so nothing may trace until the machine "
			 "restarts; start the program with xtrace record --armed instead");
	else if (facts->yama_scope == 2 && !facts->is_capable)
		snprintf(why, why_bytes,
			 "kernel.yama.ptrace_scope is 2, so only CAP_SYS_PTRACE may trace; 'sudo "
			 "sysctl kernel.yama.ptrace_scope=0' allows it");
	else if (facts->is_blocked)
		snprintf(why, why_bytes,
			 "a seccomp filter forbids ptrace here, as in a container; docker run "
			 "--cap-add SYS_PTRACE allows it");
	else if (facts->is_undumpable)
		snprintf(why, why_bytes,
			 "it protects its memory (prctl PR_SET_DUMPABLE, or its program is not "
			 "readable); %slet the program set PR_SET_DUMPABLE to 1",
			 facts->is_capable ? ""
					   : "run xtrace attach with CAP_SYS_PTRACE and "
					     "CAP_DAC_READ_SEARCH, or ");
	else if (facts->is_other_user_space)
		snprintf(why, why_bytes,
			 "it is in another user namespace; run xtrace attach inside its container");
	else if (facts->yama_scope == 1 && !facts->is_capable)
		snprintf(why, why_bytes,
			 "kernel.yama.ptrace_scope is 1, so only its parent may trace it; 'sudo "
			 "sysctl kernel.yama.ptrace_scope=0' allows it, or prctl(PR_SET_PTRACER, "
			 "PR_SET_PTRACER_ANY) in the program");
	else if (facts->extra_capabilities && !facts->is_capable)
		snprintf(why, why_bytes,
			 "it has capabilities that this shell lacks (%s); run xtrace attach with "
			 "CAP_SYS_PTRACE",
			 extra);
	else if (facts->is_capable)
		snprintf(why, why_bytes,
			 "a security module such as SELinux or AppArmor forbids it, or it is "
			 "outside "
			 "of this container%s%s%s",
			 *extra ? "; it has capabilities that this shell lacks (" : "", extra,
			 *extra ? ")" : "");
	else
		snprintf(why, why_bytes,
			 "a security module such as SELinux or AppArmor forbids it, or "
			 "CAP_SYS_PTRACE "
			 "is missing in this container; docker run --cap-add SYS_PTRACE allows it");
}
