/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files: a new file gets its name only when it is complete.
 *
 * In a directory that every user can write to, such as /tmp, another user can put a link or a file
 * where an output is expected. The rules are those of Linux (fs.protected_symlinks and
 * fs.protected_regular), enforced here because they can be switched off there, and because the
 * target of a link is replaced, not written to: in a sticky directory with write permission for
 * everyone, a file, pipe or directory is used only if it belongs to the user or to the owner of the
 * directory. A link as the last part of a path is followed only if it belongs to the user or to
 * root, in any directory. Directories on the way there are not checked. The checks and the use go through the same descriptors, so that nothing can be
 * exchanged between them.
 *
 * For tools only, any thread.
 */
#ifndef XT_LOG_NEW_FILE_H
#define XT_LOG_NEW_FILE_H

#include <stdbool.h>

/* Results besides 0 and -errno. */
#define XT_NEW_FILE_IS_A_LOG                                                                       \
	(-100000) /* a log or a crash buffer has that name, and is not replaced */
#define XT_NEW_FILE_PLANTED (-100004) /* the rule above forbids it */

struct xt_new_file {
	int fd;		  /* to write to; the caller closes it */
	char *target;	  /* absolute path that the complete file gets; NULL: written in place */
	char *unfinished; /* its path until then */
	char *name;	  /* the last part of target … */
	int folder;	  /* … and a descriptor of the directory, -1 if there is no target */
	bool is_removed;  /* unfinished is no longer there: it was renamed or removed */
};

#define XT_NEW_FILE_NONE ((struct xt_new_file){.fd = -1, .folder = -1})

/*
 * Opens a file that will replace what path names, or the end of the links that it names. Devices,
 * pipes and sockets are opened and written in place. Returns 0, -errno or one of the above; on an
 * error there is nothing to undo.
 */
int xt_new_file_open(struct xt_new_file *file, const char *path);

/* Gives the file its name, after fd is closed. 0, or -errno: then the file is removed. */
int xt_new_file_commit(struct xt_new_file *file);

/* Frees all but fd, and removes a file that was not committed. Accepts XT_NEW_FILE_NONE. */
void xt_new_file_close(struct xt_new_file *file);

/* 0, also if path does not exist; XT_NEW_FILE_PLANTED if the rule forbids to use what it names. */
int xt_new_file_check(const char *path);

/* As strerror(-error), also for the results above. */
const char *xt_new_file_error(int error);

#endif
