/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping a log within a size by leaving out its oldest events. The log is copied without them into a
 * file beside it, little by little, while the writer goes on with the old one; then the new one
 * takes its place by rename(). So at each moment there is one whole log under its name.
 *
 * Tables that others refer to (texts, stacks, modules, …) are kept whole, so whatever is kept is
 * readable. All of it is for the thread that the writer belongs to.
 */
#ifndef XT_LOG_COMPACT_H
#define XT_LOG_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/write/writer.h"

/* What the new file's name ends in. One that a killed process left behind is of no use. */
#define XT_COMPACT_SUFFIX ".new"

/* Deletes that one: of the log with this id, 0: of any. 0; -EEXIST if it is something else, which stays; -errno. */
int xt_compact_remove_draft(const char *path, uint64_t log_id);

struct xt_compacted {
	uint64_t rows[XT_KIND_COUNT]; /* left out */
	uint64_t from_ns;	      /* monotonic: events since then are all there */
};

/* Has the writer note what it writes. Call it right after xt_writer_create(). */
void xt_compact_prepare(struct xt_writer *writer);

/* Begins to copy what is to be kept, keep_bytes at most. 0 or -errno; -EFBIG if the tables alone have
 * more, or no event would be left. */
int xt_compact_begin(struct xt_writer *writer, uint64_t keep_bytes);

/* Copies some more, about budget_bytes. 0: there is more; 1: all that is in the file is copied; -errno: it
 * cannot be done and is given up. */
int xt_compact_step(struct xt_writer *writer, uint64_t budget_bytes);

/*
 * After a step gave 1: what is added from now on goes to the new file, and the next flush puts that in
 * place of the log, or, if it fails, gives it up; the old file is then as it was. Giving up drops
 * what was added, so add only what is about the new file, right behind a flush.
 */
void xt_compact_finish(struct xt_writer *writer, struct xt_compacted *compacted);

/* Whether the next flush will be the one after xt_compact_finish(). */
bool xt_compact_is_finished(const struct xt_writer *writer);

/* Gives up what was begun, if anything was and is not finished. */
void xt_compact_end(struct xt_writer *writer);

/*
 * For writer.c alone.
 *
 * compact_note: a chunk was added to the writer's buffer. 0 or -ENOMEM.
 * compact_flushed, compact_dropped: the buffer was written to the file, or discarded.
 * compact_commit: rename the copy to the log's name and continue with it. 0 or -errno.
 * compact_give_up: delete the unfinished copy and keep the old log. Does nothing without one.
 */
int compact_note(struct xt_writer *writer, uint32_t kind, uint32_t row_count, size_t chunk_bytes);
void compact_flushed(struct xt_writer *writer);
void compact_dropped(struct xt_writer *writer);
int compact_commit(struct xt_writer *writer);
void compact_give_up(struct xt_writer *writer);
void compact_free(struct xt_writer *writer);

#endif
