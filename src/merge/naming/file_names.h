/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files are shown by their names, "model.py"; where several of a run have one name, with as many
 * of the folders around them as tell them apart, "left/model.py".
 */
#ifndef XT_MERGE_FILE_NAMES_H
#define XT_MERGE_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"

struct file_name {
	uint32_t suffix; /* what is shown + 1; 0: not assigned */
	bool is_added;
};

/* The source files of a run. Zeros are an empty table. */
struct file_names {
	struct names paths;	 /* without "." and ".." */
	struct names suffixes;	 /* one or more whole components at the end of a path */
	struct file_name *files; /* by path */
	size_t file_capacity;
	uint32_t *path_counts; /* by suffix: how many paths end with it */
	size_t suffix_capacity;
};

/* Notes a path that is to be shown; file_names_assign() comes after the last. 0 or -ENOMEM. */
int file_names_add(struct file_names *files, const char *path);

/* Settles what is shown of the paths added since the last time; the others stay as they are. 0 or
 * -ENOMEM. */
int file_names_assign(struct file_names *files);

/* What is shown of a path that was added: valid until the next is. A path that was not: all of it. */
const char *file_names_shown(struct file_names *files, const char *path);

void file_names_free(struct file_names *files);

/* Is the file of a library that is handed out as source or with debug information, and not the user's? */
bool file_is_library(const char *path);

#endif
