/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the files of an output that is a directory.
 */
#include "merge/export/export_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"

int export_open_file(struct sink *sink, const char *name)
{
	struct sink_file *file;
	int error;

	if (grow(&sink->files, &sink->file_capacity, sink->file_count + 1, sizeof(*sink->files)) <
	    0)
		return -ENOMEM;
	file = &sink->files[sink->file_count];
	if (asprintf(&file->path, "%s/%s", sink->out.path, name) < 0)
		return -ENOMEM;
	error = output_open(&file->out, file->path);
	if (error)
		free(file->path);
	else
		sink->file_count++;
	return error;
}
