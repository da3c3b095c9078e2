/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads facts about this machine from /etc and /proc.
 */
#include "doctor_facts.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CAP_SYS_ADMIN 21 /* linux/capability.h */

/* Copies what follows `start` in the first line of the file that begins with it. */
static bool read_line(const char *path, const char *start, char *out, size_t out_bytes)
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool is_found = false;

	while (file && !is_found && fgets(line, sizeof(line), file)) {
		is_found = !strncmp(line, start, strlen(start));
		if (is_found)
			snprintf(out, out_bytes, "%.*s", (int)strcspn(line + strlen(start), "\n"),
				 line + strlen(start));
	}
	if (file)
		fclose(file);
	return is_found;
}

static void read_setting(const char *path, char out[16])
{
	if (!read_line(path, "", out, 16))
		strcpy(out, "unset");
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun ..." */
static void read_driver(struct facts *facts)
{
	char line[512], *at;

	if (!read_line("/proc/driver/nvidia/version", "NVRM version:", line, sizeof(line)))
		return;
	at = strstr(line, "  ");
	at = at ? at + strspn(at, " ") : line;
	snprintf(facts->driver, sizeof(facts->driver), "%.*s", (int)strcspn(at, " "), at);
}

static bool has_capability(int bit)
{
	char text[32];

	return read_line("/proc/self/status", "CapEff:", text, sizeof(text)) &&
	       strtoull(text, NULL, 16) >> bit & 1;
}

static const char *setting(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value ? value : NULL;
}

static void read_system(struct facts *facts)
{
	char *text = facts->system;
	struct utsname names;
	size_t length;

	if (!read_line("/etc/os-release", "PRETTY_NAME=", text, sizeof(facts->system)))
		text[0] = '\0';
	length = strlen(text);
	if (length > 1 && text[0] == '"') {
		memmove(text, text + 1, length);
		text[strcspn(text, "\"")] = '\0';
	}
	if (!uname(&names))
		snprintf(facts->kernel, sizeof(facts->kernel), "%s %.40s %.20s", names.sysname,
			 names.release, names.machine);
	snprintf(facts->glibc, sizeof(facts->glibc), "%s", gnu_get_libc_version());
	facts->is_container = !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK);
}

struct facts facts_read(void)
{
	struct facts facts = {0};
	struct statvfs space;
	char answer[16];

	read_system(&facts);
	read_driver(&facts);
	facts.restricts_profiling = read_line("/proc/driver/nvidia/params",
					      "RmProfilingAdminOnly: ", answer, sizeof(answer)) &&
				    atoi(answer);
	facts.is_administrator = has_capability(CAP_SYS_ADMIN);
	read_setting("/proc/sys/kernel/perf_event_paranoid", facts.perf_event_paranoid);
	read_setting("/proc/sys/kernel/yama/ptrace_scope", facts.ptrace_scope);
	facts.can_write = !access(".", W_OK | X_OK);
	if (!statvfs(".", &space))
		facts.free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
	facts.injection_path = setting("CUDA_INJECTION64_PATH");
	facts.preload = setting("LD_PRELOAD");
	return facts;
}
