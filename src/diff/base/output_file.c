/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams on new files.
 */
#include "diff/base/output_file.h"

#include <errno.h>
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
		struct writing writing = {write, outputs->list[i].writer, context};
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
