/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON documents as files.
 */
#include "json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int json_file_open(int folder, const char *name, int flags)
{
	int fd = openat(folder, name, flags | O_CLOEXEC, 0600), moved;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

char *json_file_text(const cJSON *root)
{
	char *text = cJSON_Print(root), *line = NULL;

	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	cJSON_free(text);
	return line;
}

int json_file_print(cJSON *root)
{
	char *text = json_file_text(root);
	int error = text ? 0 : -ENOMEM;

	if (text)
		fputs(text, stdout);
	free(text);
	cJSON_Delete(root);
	return error;
}

int json_file_put(int fd, const char *text)
{
	size_t length = strlen(text), done = 0;

	while (done < length) {
		ssize_t n = write(fd, text + done, length - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int json_file_replace(int folder, const char *name, const char *text)
{
	char *draft = NULL;
	int fd, error;

	if (asprintf(&draft, "%s" JSON_FILE_DRAFT, name) < 0)
		return -ENOMEM;
	fd = json_file_open(folder, draft, O_WRONLY | O_CREAT | O_NOFOLLOW | O_TRUNC);
	error = fd < 0 ? fd : json_file_put(fd, text);
	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (!error && renameat(folder, draft, folder, name))
		error = -errno;
	if (error && fd >= 0)
		unlinkat(folder, draft, 0);
	free(draft);
	return error;
}

int json_file_write(const char *folder, const char *name, const cJSON *root)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = fd < 0 ? -errno : 0;
	char *text = json_file_text(root);

	if (!error)
		error = text ? json_file_replace(fd, name, text) : -ENOMEM;
	free(text);
	if (fd >= 0)
		close(fd);
	return error;
}
