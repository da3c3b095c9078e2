/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams on new files.
 */
#include "diff/base/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unfinished.h"
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
