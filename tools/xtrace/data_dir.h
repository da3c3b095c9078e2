/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace directory: made for a recording and held while it lasts, an older one moved aside.
 * Nothing is ever overwritten or removed that is not known to be a trace of ours and at rest.
 */
#ifndef XTRACE_DATA_DIR_H
#define XTRACE_DATA_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define DATA_DIR_INFO	    "info.json"
#define DATA_DIR_REPORT	    "report.html" /* of xtrace report */
#define DATA_DIR_GPU	    "gpu.json"	  /* of xtrace bench: the state of the devices */
#define DATA_DIR_OUTPUT	    "output.txt"  /* of xtrace bench: what the program wrote */
#define DATA_DIR_FORMAT	    "xtrace.data" /* "format" in info.json: what tells ours from others' */
#define DATA_DIR_LOG_SUFFIX ".xtr"

struct info;

struct data_dir {
	char *place;	 /* as data_dir_resolve() returns it */
	char *path;	 /* absolute */
	bool is_made;	 /* was not there before */
	char *older;	 /* where the older trace waits; NULL if there was none */
	int older_claim; /* a lock on its info.json, until ours is there; -1: none */
	int claim;	 /* a lock on our info.json; -1: none */
};

/*
 * Makes the directory, which no one but the user can enter. A trace that is already there moves
 * aside until rotation_settle() decides what becomes of it (rotation.h). A directory that is still
 * recorded into is refused. On an error there is a message on stderr, and -errno is returned.
 * Call data_dir_close() in both cases.
 */
int data_dir_create(const char *path, struct data_dir *dir);

/*
 * Writes the first info.json. From then on no other recording takes the directory, until
 * data_dir_close(). On an error there is a message, and all is as it was before data_dir_create().
 */
int data_dir_begin(struct data_dir *dir, const struct info *info);
void data_dir_close(struct data_dir *dir);

/*
 * Removes a trace, if there is one. Leaves a directory alone, with a message, if it is not a trace
 * of ours, is still written to, or holds anything else. 0 or -errno.
 */
int data_dir_remove(const char *path);

/* The checks of data_dir_remove() alone, with its messages. */
int data_dir_check_removable(const char *path);

/* Fails, with a message, if a process still writes to a log in the directory: -ETXTBSY. */
int data_dir_check_idle(const char *path);

/* Fails, with a message, if another user owns the directory or can replace it. 0 or -EACCES. */
int data_dir_check_owner(const char *path);

/*
 * The path without trailing slashes. If it names a symlink, the path of the target, so that the
 * names beside it are those of the directory. To be freed; NULL if memory ran out.
 */
char *data_dir_resolve(const char *path);

/* Whether the directory holds anything that neither a recording nor a report leaves there. */
bool data_dir_has_foreign_file(const char *path);

/*
 * Locks info.json, so that only one of several recordings moves or removes the directory.
 * *claim_out is a descriptor to close, or -1 if there is no such file or the file system has no
 * locks. 0, or -EBUSY if another process has the lock.
 */
int data_dir_claim(const char *path, int *claim_out);

/*
 * The names of the logs in the directory, sorted; to be freed with data_dir_free_logs(). 0, or
 * -errno.
 */
int data_dir_list_logs(const char *path, char ***names_out, size_t *count_out);
void data_dir_free_logs(char **names, size_t count);

#endif
