/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/cuda_child.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* a process can be its own descendant while ids are reused */

static bool has_cuda(pid_t pid, bool *carries_xtrace)
{
	char path[64], *line = NULL;
	bool is_found = false;
	size_t bytes = 0;
	FILE *maps;

	*carries_xtrace = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && getline(&line, &bytes, maps) > 0) {
		is_found |= strstr(line, "/libcuda.so") != NULL;
		*carries_xtrace |= strstr(line, "/libxtrace_inject.so") != NULL;
	}
	if (maps)
		fclose(maps);
	free(line);
	return is_found;
}

static pid_t find(pid_t pid, int depth, bool *carries_xtrace);

static pid_t find_below_thread(const char *path, int depth, bool *carries_xtrace)
{
	FILE *file = fopen(path, "re");
	pid_t found = 0, child;

	while (file && !found && fscanf(file, "%d", &child) == 1)
		found = has_cuda(child, carries_xtrace) ? child
							: find(child, depth + 1, carries_xtrace);
	if (file)
		fclose(file);
	return found;
}

static pid_t find(pid_t pid, int depth, bool *carries_xtrace)
{
	const struct dirent *entry;
	char path[300];
	pid_t found = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = depth < DEPTH_MAX ? opendir(path) : NULL;
	while (folder && !found && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, entry->d_name);
		found = find_below_thread(path, depth, carries_xtrace);
	}
	if (folder)
		closedir(folder);
	return found;
}

pid_t cuda_child_find(pid_t pid, bool *carries_xtrace)
{
	return find(pid, 0, carries_xtrace);
}
