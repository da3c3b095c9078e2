/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file descriptor inside a program that we do not control.
 *
 * The program may close the descriptor, for example with closefrom(), and open a file of its own
 * under the same number. So the file is identified by device and inode, and checked before each
 * use.
 *
 * No function allocates. xt_guarded_fd_close() is async-signal-safe.
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
 * Takes ownership of fd. Moves it above 2 if needed: a program that was started without stdin,
 * stdout or stderr would write to it. Returns 0 or -errno; on an error fd is closed.
 */
int xt_guarded_fd_take(struct xt_guarded_fd *file, int fd);

/* Whether the descriptor still refers to our file. */
bool xt_guarded_fd_is_ours(const struct xt_guarded_fd *file);

/*
 * Reopens the file by its path after the program closed the descriptor. 0, -errno, or -ESTALE if
 * the path is now another file. The caller closes *again.
 */
int xt_guarded_fd_reopen(const struct xt_guarded_fd *file, const char *path,
			 struct xt_guarded_fd *again);

/* Closes the descriptor if it is still ours. Accepts XT_GUARDED_FD_NONE. */
void xt_guarded_fd_close(struct xt_guarded_fd *file);

#endif
