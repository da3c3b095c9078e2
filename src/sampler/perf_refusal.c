/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the sysctl, a seccomp filter and limits apart: each needs another remedy.
 */
#include "sampler/perf_refusal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"
/* The highest value at which users may sample their own processes in user mode. */
#define PARANOID_MAX 2

static bool read_number(const char *path, const char *format, int *number)
{
	FILE *file = fopen(path, "re");
	char line[256];
	bool is_found = false;

	while (file && !is_found && fgets(line, sizeof(line), file))
		is_found = sscanf(line, format, number) == 1;
	if (file)
		fclose(file);
	return is_found;
}

/* A filter returns EPERM by default. The kernel returns EACCES for the sysctl. */
static void explain_denied(int error, char *why, size_t why_bytes)
{
	int paranoid = 0, seccomp = 0;

	read_number(PARANOID_PATH, "%d", &paranoid);
	read_number("/proc/self/status", "Seccomp: %d", &seccomp);
	if (paranoid > PARANOID_MAX && (error == EACCES || !seccomp))
		snprintf(why, why_bytes,
			 "perf_event_paranoid is %d; 'sysctl kernel.perf_event_paranoid=%d' "
			 "allows it",
			 paranoid, PARANOID_MAX);
	else if (seccomp)
		snprintf(why, why_bytes,
			 "the container's seccomp profile forbids perf_event_open; docker run "
			 "--cap-add PERFMON or --security-opt seccomp=PROFILE allows it");
	else
		snprintf(why, why_bytes,
			 "perf_event_open: %s; a security module or a change of user forbids it",
			 strerror(error));
}

void perf_refusal_explain(int error, size_t cpu_count, char *why, size_t why_bytes)
{
	switch (error) {
	case EACCES:
	case EPERM:
		explain_denied(error, why, why_bytes);
		break;
	case ENOSYS:
		snprintf(why, why_bytes,
			 "this kernel has no perf_event_open (CONFIG_PERF_EVENTS), or a sandbox "
			 "hides it");
		break;
	case EMFILE:
	case ENFILE:
		snprintf(why, why_bytes,
			 "%zu CPUs need as many open files, more than the limit; raise "
			 "'ulimit -n'",
			 cpu_count);
		break;
	case ESRCH:
		snprintf(why, why_bytes, "the process has ended");
		break;
	default:
		snprintf(why, why_bytes, "perf_event_open: %s", strerror(error));
	}
}
