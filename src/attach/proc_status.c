/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/proc_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sampler/process_read.h"

bool proc_status_read(struct proc_status *status, pid_t id)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", id);
	return proc_file_read(path, status->text, sizeof(status->text)) > 0;
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

uint64_t proc_status_hex(const struct proc_status *status, const char *name)
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
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &own))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	return !stat(path, &other) && other.st_ino != own.st_ino;
}
