/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations that the writer and compaction share. Each retries after EINTR. Any thread.
 */
#ifndef XT_LOG_LOG_FILE_H
#define XT_LOG_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Locks the log against other writers. 0, or -EBUSY if another process has the lock. On a file
 * system without locks it succeeds without one.
 */
int log_file_lock(int fd);

/* Writes all data_bytes at offset. 0 or -errno; -EIO if no byte could be written. */
int log_file_write_all(int fd, const uint8_t *data, size_t data_bytes, uint64_t offset);

#endif
