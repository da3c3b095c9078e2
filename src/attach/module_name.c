/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/module_name.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *module_name(const struct process_module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash ? slash + 1 : module->path;
}

bool module_is_program(pid_t pid, const struct process_module *module)
{
	char path[64], program[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	length = readlink(path, program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	return !strcmp(program, module->path);
}
