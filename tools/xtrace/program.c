/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the libraries relative to bin/, and quotes words for a POSIX shell.
 */
#include "program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

void version_commit(char *out, size_t out_bytes)
{
	/* The second is that of the Debian package. */
	static const char *const places[] = {"share/xtrace/built-from",
					     "share/xtrace-gpu/built-from"};
	char path[PATH_MAX + 64];
	struct install_paths paths;
	FILE *file = NULL;

	snprintf(out, out_bytes, "unknown (not installed)");
	if (install_paths_find(&paths))
		return;
	for (size_t i = 0; !file && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", paths.top, places[i]);
		file = fopen(path, "re");
	}
	if (file && fgets(out, (int)out_bytes, file))
		out[strcspn(out, "\n")] = '\0';
	if (file)
		fclose(file);
}

#define PLAIN                                                                                      \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"_@%+=:,./-"

/* Quotes start and text together. start needs no quotes. */
static char *quote(const char *start, const char *text)
{
	char *word, *at;

	if (text[strspn(text, PLAIN)] == '\0' && *text)
		return asprintf(&word, "%s%s", start, text) < 0 ? NULL : word;
	/* Within single quotes only the quote is special. Write it as '\\''. */
	word = malloc(4 * strlen(text) + strlen(start) + 3);
	if (!word)
		return NULL;
	at = word + sprintf(word, "'%s", start);
	for (; *text; text++)
		if (*text == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *text;
	strcpy(at, "'");
	return word;
}

char *absolute_path(const char *path)
{
	char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *result;

	if (!here || asprintf(&result, "%s%s%s", here, *path == '/' ? "" : "/", path) < 0)
		result = NULL;
	free(here);
	return result;
}

char *shell_quote(const char *name)
{
	return quote(*name == '-' ? "./" : "", name);
}

char *shell_quote_argument(const char *text)
{
	return quote("", text);
}

static bool is_this_program(const char *path)
{
	struct stat found, own;

	return !stat(path, &found) && !stat("/proc/self/exe", &own) && found.st_dev == own.st_dev &&
	       found.st_ino == own.st_ino;
}

char *shell_own_name(void)
{
	const char *folders = getenv("PATH"), *end;

	for (; folders && *folders; folders = *end ? end + 1 : end) {
		char *path;
		bool is_first;

		end = strchrnul(folders, ':');
		if (asprintf(&path, "%.*s/%s", (int)(end - folders), folders,
			     program_invocation_short_name) < 0)
			return NULL;
		is_first = !access(path, X_OK);
		if (is_first && is_this_program(path)) {
			free(path);
			return strdup(program_invocation_short_name);
		}
		free(path);
		if (is_first)
			break;
	}
	return shell_quote(program_invocation_name);
}
