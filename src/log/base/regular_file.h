/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files that others may replace or truncate at any time. Such a file is never mapped: reading
 * behind its new end would raise SIGBUS. Any thread.
 */
#ifndef XT_LOG_REGULAR_FILE_H
#define XT_LOG_REGULAR_FILE_H

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

#endif
