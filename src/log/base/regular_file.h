/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that others may replace, truncate or close at any time. Such a file is never mapped:
 * reading behind its new end would raise SIGBUS. Any thread. No function allocates.
 */
#ifndef XT_LOG_REGULAR_FILE_H
#define XT_LOG_REGULAR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Opens a regular file for reading, relative to a folder as openat() does. Never blocks, opens no
 * device: the path may name a FIFO by now. flags: more flags, such as O_NOFOLLOW. Returns a
 * descriptor and fills *status, or returns -EISDIR, -ESPIPE if it is something else, or -errno.
 */
int xt_regular_open_at(int folder, const char *path, int flags, struct stat *status);

/* The same for the working directory, without more flags. */
int xt_regular_open(const char *path, struct stat *status);

/* Returns 0, -EISDIR or -ESPIPE for what xt_regular_open() refuses, or -errno. */
int xt_regular_check(int fd, struct stat *status);

/* Reads exactly so many bytes. Returns 0, -EIO if the file ends before, or -errno. */
int xt_read_at(int fd, void *out, size_t bytes, uint64_t offset);

/*
 * A file descriptor inside a program that we do not control. The program may close it, for example
 * with closefrom(), and open a file of its own under the same number. So the file is identified by
 * device and inode, and checked before each use. xt_guarded_fd_close() is async-signal-safe.
 */
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
