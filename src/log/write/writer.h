/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a log: tables become compressed chunks in a buffer, and the buffer goes to the file in
 * one write. A writer belongs to one thread. It never prints and never exits.
 */
#ifndef XT_LOG_WRITER_H
#define XT_LOG_WRITER_H

#include <stdint.h>

#include "log/write/table.h"

struct xt_writer;

/*
 * Creates the file (mode 0600, never following a symlink, never over an existing file) and puts
 * the header into the buffer. magic, versions, byte order, header_bytes and check of *header are
 * filled in here. *writer_out is closed with xt_writer_close(). 0 or -errno (-EEXIST: there is
 * such a file).
 */
int xt_writer_create(const char *path, struct xt_log_header *header, struct xt_writer **writer_out);

/*
 * Opens an existing log to append chunks behind its last intact one; a torn tail is cut off, and
 * readers see the gap in the chunk numbers. Reads the whole log once. 0, -errno, -EBADMSG if it is
 * not a log of this version, or -EBUSY while another writer has it open.
 */
int xt_writer_append(const char *path, struct xt_writer **writer_out);

/* As xt_writer_append(), for who has what the torn tail was to hold: there is no gap. */
int xt_writer_resume(const char *path, struct xt_writer **writer_out);

/*
 * Turns the rows of the table into a chunk in the buffer and clears the table. A table without
 * rows adds nothing (XT_KIND_END has its own call). 0 or -ENOMEM (the table keeps its rows).
 */
int xt_writer_add(struct xt_writer *writer, struct xt_table *table);
int xt_writer_add_end(struct xt_writer *writer);

/*
 * Writes the buffer to the file. When it returns 0, all that was added is in the file (it survives
 * the process). On an error (-ENOSPC, -EIO, …) the file is cut back to its last whole state and the
 * buffer keeps its chunks, for the next call to write them.
 * -EBADF: the program closed the descriptor; xt_writer_reopen() may help.
 */
int xt_writer_flush(struct xt_writer *writer);

/* Whether the disk has room for the buffer. True if that is not known. */
bool xt_writer_has_room(const struct xt_writer *writer);

/* Numbers the next chunk so that readers see that something is missing before it. */
void xt_writer_leave_gap(struct xt_writer *writer);

/* Whether the descriptor still means the log. */
bool xt_writer_is_open(const struct xt_writer *writer);

/*
 * Opens the log again by its path, after the program closed the descriptor, and locks it. 0 or
 * -errno; -ESTALE if it is another file now or another program has written to it, -EBUSY while
 * another program has it open. Gives up a smaller copy that is under way. A child that is forked
 * meanwhile inherits the descriptor.
 */
int xt_writer_reopen(struct xt_writer *writer);

/* Bytes in the file, and bytes that wait in the buffer. */
uint64_t xt_writer_file_bytes(const struct xt_writer *writer);
uint64_t xt_writer_pending_bytes(const struct xt_writer *writer);

/* The file descriptor. */
int xt_writer_fd(const struct xt_writer *writer);

/* Whether nobody can open the file any more. */
bool xt_writer_is_deleted(const struct xt_writer *writer);

/* In a forked child: closes the descriptor, and nothing else. Async-signal-safe. */
void xt_writer_abandon(struct xt_writer *writer);

/* Closes the file without flushing. Accepts NULL. */
void xt_writer_close(struct xt_writer *writer);

#endif
