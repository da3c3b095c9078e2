/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the libraries relative to bin/.
 */
#include "install_paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The last one is that of the Debian package. */
static const char *const library_folders[] = {
	"lib",
	"lib64",
	"lib/" XTRACE_LIBRARY_ARCHITECTURE,
	"lib/" XTRACE_LIBRARY_ARCHITECTURE "/xtrace-gpu",
};

/* Returns 0 or -ENAMETOOLONG. */
static int join(char *out, const char *folder, const char *rest)
{
	int length = snprintf(out, PATH_MAX, "%s/%s", folder, rest);

	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static void cut_last_component(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

int install_paths_find(struct install_paths *paths)
{
	char bin[PATH_MAX], *top = paths->top, folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", bin, sizeof(bin) - 1);
	int error = -ENOENT;

	if (length < 0)
		return -errno;
	bin[length] = '\0';
	strcpy(paths->program, bin);
	cut_last_component(bin);
	strcpy(top, bin);
	cut_last_component(top);
	for (size_t i = 0; i < sizeof(library_folders) / sizeof(library_folders[0]); i++) {
		if (join(folder, top, library_folders[i]) ||
		    join(paths->injected, folder, "libxtrace_inject.so") ||
		    join(paths->simulator, folder, "xtrace/simgpu"))
			return -ENAMETOOLONG;
		if (access(paths->injected, R_OK) == 0)
			return 0;
		if (errno == EACCES)
			error = -EACCES;
	}
	return error;
}
