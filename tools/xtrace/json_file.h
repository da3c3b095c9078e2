/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON documents as files: read whole, and written so that they are never half there.
 */
#ifndef XTRACE_JSON_FILE_H
#define XTRACE_JSON_FILE_H

#include <cjson/cJSON.h>

#define JSON_FILE_DRAFT ".new" /* behind its name, while a file is written */

/*
 * As openat() with O_CLOEXEC, for what is open while messages are written: it never is one of the
 * standard streams, should those be closed. The descriptor, or -errno.
 */
int json_file_open(int folder, const char *name, int flags);

/* The text of a document, with a newline; to be freed. NULL if there is no memory. */
char *json_file_text(const cJSON *root);

/* 0 or -errno. */
int json_file_put(int fd, const char *text);

/* Puts the text into a file in the folder, in place of what was there, in one step. 0 or -errno. */
int json_file_replace(int folder, const char *name, const char *text);

/* The same with a document, and a folder by its path. */
int json_file_write(const char *folder, const char *name, const cJSON *root);

/* A document from a regular file; NULL if it cannot be had or is none. cJSON_Delete() it. */
cJSON *json_file_read(const char *folder, const char *name);

#endif
