/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a log: tables become compressed chunks in a buffer, and one write appends the buffer to
 * the file. A writer belongs to one thread. It never prints and never exits.
 */
#ifndef XT_LOG_WRITER_H
#define XT_LOG_WRITER_H

#include <stdint.h>

#include "log/base/table.h"

struct xt_writer;

/*
 * Creates the file with mode 0600 and puts the header into the buffer. Never follows a symlink or
 * overwrites a file (-EEXIST). Fills in magic, versions, byte order, header_bytes and check of
 * *header. Close *writer_out with xt_writer_close(). 0 or -errno.
 */
int xt_writer_create(const char *path, struct xt_log_header *header, struct xt_writer **writer_out);

/*
 * Creates the log DATA_DIR/HOST.PID[-NUMBER]ENDING under the next free name, with a random log_id,
 * as xt_writer_create() does. Stores its path in `path`, of PATH_MAX bytes.
 */
int xt_writer_create_new(char *path, const char *data_dir, const char *ending,
			 struct xt_log_header *header, struct xt_writer **writer_out);

/*
 * Opens an existing log to append chunks after the last intact one. Cuts off a torn tail; readers
 * see the gap in the chunk numbers. Reads the whole log once. Returns 0, -errno, -EBADMSG if it is
 * not a log of this version, or -EBUSY while another writer has it open.
 */
int xt_writer_append(const char *path, struct xt_writer **writer_out);

/* Like xt_writer_append(), but leaves no gap: the caller still has the data of the torn tail. */
int xt_writer_resume(const char *path, struct xt_writer **writer_out);

/*
 * Turns the rows of the table into a chunk in the buffer and clears the table. Adds nothing for a
 * table without rows. 0, or -ENOMEM, in which case the table keeps its rows. XT_KIND_END has its
 * own call.
 */
int xt_writer_add(struct xt_writer *writer, struct xt_table *table);
int xt_writer_add_end(struct xt_writer *writer);

/*
 * Writes the buffer to the file. After it returns 0, all added rows are in the file and survive the
 * process. After an error (-ENOSPC, -EIO, …) the file is cut back to its last intact chunk, and the
 * buffer is kept for the next call. The error -EBADF means that the program closed the descriptor:
 * call xt_writer_reopen().
 */
int xt_writer_flush(struct xt_writer *writer);

/* Whether the disk has room for the buffer. True if unknown. */
bool xt_writer_has_room(const struct xt_writer *writer);

/* Skips a chunk number, so that readers know that data is missing here. */
void xt_writer_leave_gap(struct xt_writer *writer);

/* Whether the descriptor still refers to the log. */
bool xt_writer_is_open(const struct xt_writer *writer);

/*
 * Reopens and locks the log by its path, after the program closed the descriptor. Returns 0 or
 * -errno. The error is -ESTALE if the path is another file now, or another program wrote to it. It
 * is -EBUSY if another program has it open. Gives up a compaction in progress. A child forked
 * meanwhile inherits the descriptor.
 */
int xt_writer_reopen(struct xt_writer *writer);

/* Bytes in the file, and bytes in the buffer. */
uint64_t xt_writer_file_bytes(const struct xt_writer *writer);
uint64_t xt_writer_pending_bytes(const struct xt_writer *writer);

/* The path it was created with, or NULL. */
const char *xt_writer_path(const struct xt_writer *writer);

/* Whether the file was deleted. */
bool xt_writer_is_deleted(const struct xt_writer *writer);

/* For a forked child: closes the descriptor and nothing else. Async-signal-safe. */
void xt_writer_abandon(struct xt_writer *writer);

/* Closes the file without flushing. Accepts NULL. */
void xt_writer_close(struct xt_writer *writer);

#endif
