/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a set of files. First all contents go to temporary files next to their targets. Then the
 * renames follow, which hardly fail.
 */
#include "ci_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "log/base/new_file.h"

#define FOLDERS_MAX 16

/* Folders that this program created, outermost first. */
struct new_folders {
	char *paths[FOLDERS_MAX];
	size_t count;
};

int ci_files_add(struct ci_files *files, const char *path, char *text, size_t length)
{
	if (!text || files->count == CI_FILES_MAX) {
		free(text);
		return -ENOMEM;
	}
	files->list[files->count++] =
		(struct ci_file){.path = path, .text = text, .length = length};
	return 0;
}

int ci_file_read(const char *path, char **text_out, size_t *length_out)
{
	FILE *file = fopen(path, "re"), *text;
	char buffer[1 << 14];
	int error = file ? 0 : -errno;
	size_t n;

	*text_out = NULL;
	if (error)
		return error;
	text = open_memstream(text_out, length_out);
	while (text && (n = fread(buffer, 1, sizeof(buffer), file)) > 0)
		fwrite(buffer, 1, n, text);
	if (ferror(file))
		error = -EIO;
	if (!text || fclose(text))
		error = -ENOMEM;
	fclose(file);
	return error;
}

int ci_files_add_copy(struct ci_files *files, const char *path, const char *from)
{
	size_t length;
	char *text;
	struct stat about;
	int error = ci_file_read(from, &text, &length);

	if (!error && stat(from, &about))
		error = -errno;
	if (error) {
		print_error("cannot read '%s': %s", from, strerror(-error));
		free(text);
		return error;
	}
	error = ci_files_add(files, path, text, length);
	if (error)
		print_error("cannot add '%s': %s", path, strerror(-error));
	else
		files->list[files->count - 1].is_executable = about.st_mode & S_IXUSR;
	return error;
}

void ci_files_free(struct ci_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->list[i].text);
	*files = (struct ci_files){0};
}

/* Creates the missing folders of a path. Returns 0 or -errno. */
static int make_folders(struct new_folders *folders, const char *path)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (!mkdir(folder, 0777)) {
			if (folders->count == FOLDERS_MAX)
				return -ENAMETOOLONG;
			folders->paths[folders->count] = strdup(folder);
			if (!folders->paths[folders->count++])
				return -ENOMEM;
		} else if (errno != EEXIST) {
			return -errno;
		}
		*slash = '/';
	}
	return 0;
}

/* Writes the contents to a temporary file next to the target. Returns as xt_new_file_open(). */
static int prepare(struct xt_new_file *place, const struct ci_file *file)
{
	int error = xt_new_file_open(place, file->path);
	size_t done = 0;

	while (!error && done < file->length) {
		ssize_t n = write(place->fd, file->text + done, file->length - done);

		if (n < 0 && errno != EINTR)
			error = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (!error && file->is_executable && fchmod(place->fd, 0755))
		error = -errno;
	if (place->fd >= 0 && close(place->fd) && !error)
		error = -errno;
	return error;
}

/* Removes the new files that have their name already, and the new folders. */
static void undo(const struct ci_files *files, const bool *is_new, size_t committed,
		 struct new_folders *folders)
{
	for (size_t i = 0; i < committed; i++)
		if (is_new[i])
			unlink(files->list[i].path);
	for (size_t i = folders->count; i-- > 0;)
		rmdir(folders->paths[i]);
}

int ci_files_write(const struct ci_files *files)
{
	struct xt_new_file places[CI_FILES_MAX];
	struct new_folders folders = {0};
	bool is_new[CI_FILES_MAX];
	size_t prepared = 0, committed = 0;
	const char *path = "";
	int error = 0;

	for (; !error && prepared < files->count; prepared++) {
		path = files->list[prepared].path;
		places[prepared] = XT_NEW_FILE_NONE;
		is_new[prepared] = access(path, F_OK) != 0;
		error = make_folders(&folders, path);
		if (!error)
			error = prepare(&places[prepared], &files->list[prepared]);
	}
	for (; !error && committed < files->count; committed++) {
		path = files->list[committed].path;
		error = xt_new_file_commit(&places[committed]);
	}
	for (size_t i = 0; i < prepared; i++)
		xt_new_file_close(&places[i]);
	if (error) {
		print_error("cannot write '%s': %s", path, xt_new_file_error(error));
		undo(files, is_new, committed, &folders);
	}
	for (size_t i = 0; i < folders.count; i++)
		free(folders.paths[i]);
	return error;
}
