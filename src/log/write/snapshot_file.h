/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a log to another file while the writer continues with it. The copy ends with rows of its
 * own and END, so it is a closed log. Call these functions on the writer's thread.
 */
#ifndef XT_LOG_SNAPSHOT_FILE_H
#define XT_LOG_SNAPSHOT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "log/write/writer.h"

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
