/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace directory: made for a recording, an older one moved aside. Nothing is ever overwritten
 * or removed that is not known to be a trace of ours.
 */
#ifndef XTRACE_DATA_DIR_H
#define XTRACE_DATA_DIR_H

#include <stddef.h>

#define DATA_DIR_INFO	    "info.json"
#define DATA_DIR_INFO_DRAFT "info.json.new"
#define DATA_DIR_FORMAT	    "xtrace.data" /* "format" in info.json: what tells ours from others' */
#define DATA_DIR_LOG_SUFFIX ".xtr"

/*
 * Makes the directory, which no one but the user can enter. What was recorded there before is
 * moved to <path>.old, in place of what was there. On success *path_out is its absolute path, to
 * be freed. Otherwise a message is on stderr and -errno is returned.
 */
int data_dir_create(const char *path, char **path_out);

/*
 * The names of the logs in the directory, sorted; to be freed with data_dir_free_logs(). 0, or
 * -errno.
 */
int data_dir_list_logs(const char *path, char ***names_out, size_t *count_out);
void data_dir_free_logs(char **names, size_t count);

#endif
