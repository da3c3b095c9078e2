/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file descriptor inside somebody else's program, which may close it behind our back
 * (closefrom(), a daemon's loop over all descriptors) and be given the same number for a file of
 * its own. So the file is known by device and inode, and asked for before each use.
 *
 * No function here allocates; xt_guarded_fd_close() is async-signal-safe.
 */
#ifndef XT_LOG_GUARDED_FD_H
#define XT_LOG_GUARDED_FD_H

#include <stdbool.h>
#include <sys/types.h>

struct xt_guarded_fd {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
};
#define XT_GUARDED_FD_NONE ((struct xt_guarded_fd){.fd = -1})

/*
 * Takes fd over, and away from the numbers of stdin, stdout and stderr: a program that was started
 * with one of them closed will write there. 0 or -errno; fd is closed then.
 */
int xt_guarded_fd_take(struct xt_guarded_fd *file, int fd);

/* Does the descriptor still mean our file? */
bool xt_guarded_fd_is_ours(const struct xt_guarded_fd *file);

/*
 * Opens the file again by its path, after the program closed the descriptor. 0 or -errno; -ESTALE
 * if the path names another file now. *again gets the descriptor, and is the caller's.
 */
int xt_guarded_fd_reopen(const struct xt_guarded_fd *file, const char *path,
			 struct xt_guarded_fd *again);

/* Closes it if it is still ours. Accepts XT_GUARDED_FD_NONE. */
void xt_guarded_fd_close(struct xt_guarded_fd *file);

#endif
