/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates output files. A file gets its name only when it is complete.
 *
 * In a directory that everyone can write to, such as /tmp, another user can plant a link or a file
 * at the path of an output. These rules prevent that:
 *
 * - In a sticky, world-writable directory, a file is used only if the user or the owner of the
 *   directory owns it.
 * - A link as the last path component is followed only if the user or root owns it.
 *
 * Linux has the same rules (fs.protected_symlinks, fs.protected_regular), but they can be off.
 * Earlier path components are not checked. Check and use share descriptors, so no file can be
 * swapped between them. For tools only, any thread.
 */
#ifndef XT_LOG_NEW_FILE_H
#define XT_LOG_NEW_FILE_H

#include <stdbool.h>

/* Results besides 0 and -errno. */
#define XT_NEW_FILE_IS_A_LOG                                                                       \
	(-100000) /* the path is a log or crash buffer, which is never replaced */
#define XT_NEW_FILE_PLANTED (-100004) /* one of the rules above forbids it */

struct xt_new_file {
	int fd;		  /* to write to; the caller closes it */
	char *target;	  /* absolute path of the complete file; NULL: written in place */
	char *unfinished; /* its path until then */
	char *name;	  /* last component of target */
	int folder;	  /* descriptor of its directory; -1 without a target */
	bool is_removed;  /* unfinished was renamed or deleted */
};

#define XT_NEW_FILE_NONE ((struct xt_new_file){.fd = -1, .folder = -1})

/*
 * Opens a file that will replace the file at `path`, or the target of the links there. Devices,
 * pipes and sockets are opened and written in place. Returns 0, -errno or a result above. An error
 * leaves nothing to clean up.
 */
int xt_new_file_open(struct xt_new_file *file, const char *path);

/* Renames the file to its target. Close fd first. 0 or -errno; on an error the file is deleted. */
int xt_new_file_commit(struct xt_new_file *file);

/* Frees everything except fd, and deletes an uncommitted file. Accepts XT_NEW_FILE_NONE. */
void xt_new_file_close(struct xt_new_file *file);

/* 0, also if path does not exist. XT_NEW_FILE_PLANTED if the rules forbid using the file. */
int xt_new_file_check(const char *path);

/* strerror(-error), and texts for the results above. */
const char *xt_new_file_error(int error);

#endif
