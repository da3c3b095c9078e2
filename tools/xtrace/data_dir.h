/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace directory of a recording. An older trace moves aside. Only files that belong to a
 * trace, and that no process writes to, are overwritten or removed.
 */
#ifndef XTRACE_DATA_DIR_H
#define XTRACE_DATA_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define DATA_DIR_INFO	    "info.json"
#define DATA_DIR_REPORT	    "report.html" /* written by xtrace report */
#define DATA_DIR_GPU	    "gpu.json"	  /* written by xtrace bench: the state of the GPUs */
#define DATA_DIR_OUTPUT	    "output.txt"  /* written by xtrace bench: the output of the program */
#define DATA_DIR_FORMAT	    "xtrace.data" /* "format" in info.json, which marks a trace directory */
#define DATA_DIR_LOG_SUFFIX ".xtr"

struct info;

struct data_dir {
	char *place;	 /* from data_dir_resolve() */
	char *path;	 /* absolute */
	bool is_made;	 /* the directory was created */
	char *older;	 /* the older trace that moved aside; NULL: none */
	int older_claim; /* a lock on its info.json, until the new one exists; -1: none */
	int claim;	 /* a lock on the new info.json; -1: none */
};

/*
 * Creates the directory, readable by its owner only. An older trace moves aside until
 * rotation_settle() chooses which one stays (rotation.h). Fails if a recording still uses the
 * directory. Returns 0, or -errno after an error message. Call data_dir_close() in both cases.
 */
int data_dir_create(const char *path, struct data_dir *dir);

/*
 * Writes the first info.json, which keeps other recordings out until data_dir_close(). On an error,
 * prints a message and undoes data_dir_create().
 */
int data_dir_begin(struct data_dir *dir, const struct info *info);
void data_dir_close(struct data_dir *dir);

/*
 * Removes a trace, if there is one. Refuses, with an error message, a directory that is not a
 * trace, is still written to, or contains other files. Returns 0 or -errno.
 */
int data_dir_remove(const char *path);

/* Makes the checks of data_dir_remove(), with the same error messages. */
int data_dir_check_removable(const char *path);

/* Returns 0, or -ETXTBSY after an error message if a process still writes to a log. */
int data_dir_check_idle(const char *path);

/*
 * Returns 0, or -EACCES after an error message if another user owns or can replace the directory.
 */
int data_dir_check_owner(const char *path);

/*
 * The path without trailing slashes. If it names a symlink, the path of the target, so that the
 * names beside it are those of the directory. The caller frees it. NULL if memory ran out.
 */
char *data_dir_resolve(const char *path);

/* True if the directory contains a file that xtrace did not create. */
bool data_dir_has_foreign_file(const char *path);

/*
 * Locks info.json, so that only one of several recordings moves or removes the directory.
 * *claim_out is a descriptor to close, or -1 if there is no such file or the file system has no
 * locks. Returns 0, or -EBUSY if another process has the lock.
 */
int data_dir_claim(const char *path, int *claim_out);

/*
 * Lists the logs in the directory by name, sorted. Free them with data_dir_free_logs(). Returns 0
 * or -errno.
 */
int data_dir_list_logs(const char *path, char ***names_out, size_t *count_out);
void data_dir_free_logs(char **names, size_t count);

#endif
