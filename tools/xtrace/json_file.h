/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON documents as files, which are replaced atomically.
 */
#ifndef XTRACE_JSON_FILE_H
#define XTRACE_JSON_FILE_H

#include <cjson/cJSON.h>

#define JSON_FILE_DRAFT ".new" /* of a file that is being written */

/*
 * Like openat() with O_CLOEXEC. The descriptor is never 0, 1 or 2, so that no message goes into the
 * file if the standard streams are closed. Returns the descriptor or -errno.
 */
int json_file_open(int folder, const char *name, int flags);

/* The text of a document, with a newline. The caller frees it. NULL if memory ran out. */
char *json_file_text(const cJSON *root);

/* Prints a document to stdout, and deletes it. Returns 0 or -ENOMEM. */
int json_file_print(cJSON *root);

/* Writes all of the text. Returns 0 or -errno. */
int json_file_put(int fd, const char *text);

/* Replaces a file in the folder atomically. Returns 0 or -errno. */
int json_file_replace(int folder, const char *name, const char *text);

/* Like json_file_replace(), for a document and the path of a folder. */
int json_file_write(const char *folder, const char *name, const cJSON *root);

#endif
