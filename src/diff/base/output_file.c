/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams on new files.
 */
#include "diff/base/output_file.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/unfinished.h"
#include "cli/command.h"
#include "log/base/new_file.h"

int output_file_write(const char *path, int (*write)(FILE *file, void *context), void *context)
{
	struct xt_new_file file;
	FILE *out;
	int error = xt_new_file_open(&file, path);

	if (error)
		return error;
	unfinished_add(file.unfinished);
	out = fdopen(file.fd, "w");
	if (out) {
		error = write(out, context);
		if (fclose(out) && !error)
			error = -errno;
	} else {
		error = -errno;
		close(file.fd);
	}
	if (!error)
		error = xt_new_file_commit(&file);
	unfinished_remove(file.unfinished);
	xt_new_file_close(&file);
	return error;
}

/* Returns 0, or -errno if the directory of a file is missing. */
static int check_directory(const char *path)
{
	char *copy = xt_strdup(path);
	int error = !copy || access(dirname(copy), F_OK) ? -errno : 0;

	free(copy);
	return error;
}

int outputs_add(struct outputs *outputs, const void *format, const char *path)
{
	int error;

	if (!*path)
		return -EINVAL;
	for (size_t i = 0; i < outputs->count; i++) {
		if (strcmp(outputs->list[i].path, path) != 0)
			continue;
		print_error("cannot write two outputs to '%s'", path);
		return -EEXIST;
	}
	if (outputs->count == OUTPUTS_MAX) {
		print_error("cannot write more than %d outputs", OUTPUTS_MAX);
		return -ENOENT;
	}
	error = check_directory(path);
	if (error) {
		print_error("cannot write '%s': %s", path, strerror(-error));
		return -ENOENT;
	}
	outputs->list[outputs->count].format = format;
	outputs->list[outputs->count++].path = path;
	return 0;
}

struct writing {
	output_write *write;
	const void *format;
	void *context;
};

static int write_stream(FILE *file, void *context)
{
	const struct writing *writing = context;
	int error = writing->write(writing->format, file, writing->context);

	return fflush(file) && !error ? -errno : error;
}

int outputs_write(const struct outputs *outputs, output_write *write, void *context)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < outputs->count; i++) {
		struct writing writing = {write, outputs->list[i].format, context};
		const char *path = outputs->list[i].path;
		int error = strcmp(path, "-") ? output_file_write(path, write_stream, &writing)
					      : write_stream(stdout, &writing);

		if (!error)
			continue;
		print_error("cannot write '%s': %s", path,
			    error == -ENODATA ? "no runs were compared" : xt_new_file_error(error));
		status = STATUS_FAILED;
	}
	return status;
}
