/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/thread-self. /proc/self would be empty after the main thread ended while others run.
 * Writer thread only.
 */
#include "inject/writer/module_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/runtime/own_program.h"

#define LINE_BYTES_MAX (XT_MODULE_PATH_MAX + 256)

/* Reads /proc/thread-self/maps line by line. */
struct maps {
	int fd;
	size_t begin, end; /* part of the text not returned yet */
	char text[2 * LINE_BYTES_MAX];
};

/* The next line without its end; NULL after the last. Valid until the next call. */
static char *next_line(struct maps *maps)
{
	char *line = maps->text + maps->begin, *end;
	ssize_t n = 1;

	while (!(end = memchr(line, '\n', maps->end - maps->begin)) && n > 0) {
		memmove(maps->text, line, maps->end - maps->begin);
		maps->end -= maps->begin;
		maps->begin = 0;
		line = maps->text;
		do
			n = read(maps->fd, maps->text + maps->end, sizeof(maps->text) - maps->end);
		while (n < 0 && errno == EINTR);
		maps->end += n > 0 ? (size_t)n : 0;
	}
	if (!end)
		return NULL;
	*end = '\0';
	maps->begin = (size_t)(end + 1 - maps->text);
	return line;
}

/* Finds the file mapped at an address; false if there is none. */
static bool find_mapped(uint64_t address, char *path)
{
	static const char deleted_suffix[] = " (deleted)";
	static struct maps maps; /* too large for a stack */
	char *line, *file, *end;
	bool is_found = false;

	maps.begin = maps.end = 0;
	maps.fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	while (maps.fd >= 0 && !is_found && (line = next_line(&maps))) {
		if (strtoull(line, &end, 16) > address)
			break;
		if (*end != '-' || strtoull(end + 1, NULL, 16) <= address)
			continue;
		file = strchr(line, '/');
		if (!file || strlen(file) >= XT_MODULE_PATH_MAX)
			break;
		end = file + strlen(file);
		if ((size_t)(end - file) > strlen(deleted_suffix) &&
		    !memcmp(end - strlen(deleted_suffix), deleted_suffix, strlen(deleted_suffix)))
			end -= strlen(deleted_suffix);
		memcpy(path, file, (size_t)(end - file));
		path[end - file] = '\0';
		is_found = true;
	}
	if (maps.fd >= 0)
		close(maps.fd);
	return is_found;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether the file may have been opened by that name. Another file may be mapped there by now. */
static bool could_be_file(const char *path, const char *name)
{
	static char whole[PATH_MAX];

	return !strcmp(last_component(path), last_component(name)) ||
	       (realpath(name, whole) && !strcmp(whole, path));
}

size_t module_path(const struct module_image *image, const char *name, size_t name_bytes,
		   char *path)
{
	static char own[XT_MODULE_PATH_MAX], found[XT_MODULE_PATH_MAX];

	if (name_bytes >= XT_MODULE_PATH_MAX)
		name_bytes = XT_MODULE_PATH_MAX - 1;
	if (!name_bytes)
		return own_program_path(path, XT_MODULE_PATH_MAX);
	memcpy(own, name, name_bytes);
	own[name_bytes] = '\0';
	name = own;
	/* "linux-vdso.so.1" is no file. */
	if (name[0] != '/' && find_mapped(image->start, found) && could_be_file(found, name))
		name = found;
	name_bytes = strlen(name);
	memcpy(path, name, name_bytes);
	return name_bytes;
}
