/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction: keeps a log below a size limit by discarding its oldest events. Snapshots: copies of
 * a log that end with rows of their own and END, so they are closed logs.
 *
 * Both copy the log to a file beside it, step by step, while the writer continues with the old
 * file. After a compaction, rename() replaces the log, so there is always one complete log under
 * its name. Tables that events refer to (texts, stacks, modules) are kept whole. Call these
 * functions on the writer's thread. File operations that the writer shares retry after EINTR; any
 * thread may call them.
 */
#ifndef XT_LOG_COMPACT_H
#define XT_LOG_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/regular_file.h"
#include "log/write/writer.h"

/*
 * Locks the log against other writers. 0, or -EBUSY if another process has the lock. On a file
 * system without locks it succeeds without one.
 */
int log_file_lock(int fd);

/* Writes all data_bytes at offset. 0 or -errno; -EIO if no byte could be written. */
int log_file_write_all(int fd, const uint8_t *data, size_t data_bytes, uint64_t offset);

/* Suffix of the unfinished copy. A copy left by a killed process is useless. */
#define XT_COMPACT_SUFFIX ".new"

/*
 * Deletes an unfinished copy of the log with this id (0: of any log). Returns 0, -EEXIST if the
 * file is something else, which is kept, or -errno.
 */
int xt_compact_remove_draft(const char *path, uint64_t log_id);

struct xt_compacted {
	uint64_t rows[XT_KIND_COUNT]; /* discarded */
	uint64_t from_ns;	      /* monotonic: all events since then are in the log */
};

/* Makes the writer track its chunks. Call it right after xt_writer_create(). */
void xt_compact_prepare(struct xt_writer *writer);

/*
 * Starts a copy of at most keep_bytes. 0 or -errno; -EFBIG if the tables alone are larger, or no
 * event would remain.
 */
int xt_compact_begin(struct xt_writer *writer, uint64_t keep_bytes);

/*
 * Starts a copy with all events since then. 0 or -errno; -ENODATA if there is nothing to discard,
 * or no event would remain.
 */
int xt_compact_begin_since(struct xt_writer *writer, uint64_t since_ns);

/*
 * Copies about budget_bytes more. Returns 0 if chunks remain, 1 if all are copied, or -errno after
 * giving up.
 */
int xt_compact_step(struct xt_writer *writer, uint64_t budget_bytes);

/*
 * Call it after a step returned 1. Rows added from now on go to the new file, and the next flush
 * replaces the log with it. If that flush fails, compaction is given up and the old log stays as it
 * was; rows added since are discarded. So flush first, then add only rows that describe the new
 * file. The next compaction discards META rows among them.
 */
void xt_compact_finish(struct xt_writer *writer, struct xt_compacted *compacted);

/* Whether xt_compact_finish() was called and the flush is still to come. */
bool xt_compact_is_finished(const struct xt_writer *writer);

/* Gives up an unfinished compaction, if there is one: deletes the copy and keeps the old log. */
void xt_compact_end(struct xt_writer *writer);

/*
 * For writer.c alone.
 *
 * - compact_note: a chunk was added to the writer's buffer. 0 or -ENOMEM.
 * - compact_flushed: the buffer was written to the file.
 * - compact_commit: renames the copy to the log's name and continues with it. 0 or -errno.
 */
int compact_note(struct xt_writer *writer, uint32_t kind, uint32_t row_count, size_t chunk_bytes);
void compact_flushed(struct xt_writer *writer);
int compact_commit(struct xt_writer *writer);
void compact_free(struct xt_writer *writer);

#define XT_SNAPSHOT_FOLDER "snapshots" /* in the trace directory, which readers do not enter */

/* All drafts of a log have this ending, so that recovery finds what a killed process left. */
#define XT_SNAPSHOT_DRAFT ".xtr.new"

/*
 * Makes DIR/snapshots/NAME and the ending, for the log DIR/NAME.xtr. 0, -EINVAL if the log is not
 * called so, or -ENAMETOOLONG.
 */
int xt_snapshot_path(const char *log_path, const char *ending, char *path, size_t path_bytes);

/* The ending of snapshot number `number`. */
#define XT_SNAPSHOT_ENDING_BYTES 40
void xt_snapshot_ending(char ending[XT_SNAPSHOT_ENDING_BYTES], uint32_t number);

/*
 * Creates the draft of a copy of all that is in the file. Call it right after a flush. Rows added
 * from now until xt_snapshot_seal() belong to the copy alone. 0 or -errno.
 */
int xt_snapshot_begin(struct xt_writer *writer, const char *draft_path);

/* Takes the rows of the copy, of which END is the last. 0, or -ENOMEM after giving up. */
int xt_snapshot_seal(struct xt_writer *writer);

/* Copies about budget_bytes more. 0: more remains, 1: complete; -errno after giving up. */
int xt_snapshot_step(struct xt_writer *writer, uint64_t budget_bytes);

/* Gives the complete copy its name. 0, or -errno after giving up. */
int xt_snapshot_commit(struct xt_writer *writer, const char *path);

/* Deletes an unfinished copy, if there is one. */
void xt_snapshot_give_up(struct xt_writer *writer);

#endif
