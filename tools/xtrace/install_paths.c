/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the library in the places that it has relative to bin/; see install_paths.h.
 */
#include "install_paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const library_folders[] = {
	"lib",
	"lib64",
	"lib/x86_64-linux-gnu",
};

/* 0, or -ENAMETOOLONG. */
static int join(char *out, const char *folder, const char *rest)
{
	int length = snprintf(out, PATH_MAX, "%s/%s", folder, rest);

	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Cuts the last component off. */
static void to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

int install_paths_find(struct install_paths *paths)
{
	char bin[PATH_MAX], top[PATH_MAX], folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", bin, sizeof(bin) - 1);

	if (length < 0)
		return -errno;
	bin[length] = '\0';
	strcpy(paths->front, bin);
	to_parent(bin);
	strcpy(top, bin);
	to_parent(top);
	if (join(paths->merge, bin, "xtrace-merge") || join(paths->diff, bin, "xtrace-diff") ||
	    join(paths->baseline, bin, "xtrace-baseline"))
		return -ENAMETOOLONG;
	for (size_t i = 0; i < sizeof(library_folders) / sizeof(library_folders[0]); i++) {
		if (join(folder, top, library_folders[i]) ||
		    join(paths->injected, folder, "libxtrace_inject.so") ||
		    join(paths->simulator, folder, "xtrace/simgpu"))
			return -ENAMETOOLONG;
		if (access(paths->injected, R_OK) == 0)
			return 0;
	}
	return -ENOENT;
}
