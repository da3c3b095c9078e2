/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of files that are written together: all of them, or none.
 */
#ifndef XTRACE_CI_FILES_H
#define XTRACE_CI_FILES_H

#include <stdbool.h>
#include <stddef.h>

#define CI_FILES_MAX 16

struct ci_file {
	const char *path;
	char *text; /* owned */
	size_t length;
	bool is_executable;
};

/* All zeros is an empty set. */
struct ci_files {
	struct ci_file list[CI_FILES_MAX];
	size_t count;
};

/*
 * Takes over the text, which is NULL if memory ran out. The path must stay valid. Returns 0 or
 * -ENOMEM.
 */
int ci_files_add(struct ci_files *files, const char *path, char *text, size_t length);

/* Adds a copy of the file `from`. Returns 0, or -errno after an error message. */
int ci_files_add_copy(struct ci_files *files, const char *path, const char *from);

/*
 * Creates missing folders and writes all files. After an error, files that existed keep their
 * contents, and new files and folders are gone. Returns 0, or -errno after an error message.
 */
int ci_files_write(const struct ci_files *files);

void ci_files_free(struct ci_files *files);

/* Reads a file. The caller frees the text, which ends with '\0'. Returns 0 or -errno. */
int ci_file_read(const char *path, char **text_out, size_t *length_out);

#endif
