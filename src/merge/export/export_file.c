/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the files of an output that is a directory.
 */
#include "merge/export/export_file.h"

#include <stdlib.h>

#include "base/memory.h"

int export_open_file(struct sink *sink, const char *name)
{
	struct sink_file *file;
	int error;

	xt_grow(&sink->files, &sink->file_capacity, sink->file_count + 1, sizeof(*sink->files));
	file = &sink->files[sink->file_count];
	file->path = xt_asprintf("%s/%s", sink->out.path, name);
	error = output_open(&file->out, file->path);
	if (error)
		free(file->path);
	else
		sink->file_count++;
	return error;
}
