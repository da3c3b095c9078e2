/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the log for what it already holds, so that recovery adds nothing twice, and leaves out
 * what happened while recording was paused, as the tracer would have. Turns the rest into rows of
 * the log. recovery->error keeps the first error; later calls then do nothing.
 */
#ifndef XT_LOG_RECOVER_LOG_H
#define XT_LOG_RECOVER_LOG_H

#include "log/recover/recover_crash_buffer.h"

void recovery_note_call(struct recovery *recovery, uint32_t correlation_id);
void recovery_note_switch(struct recovery *recovery, uint64_t time_ns, bool is_on);

/* Reads the whole log. 0 or -errno. */
int recovery_scan_log(struct recovery *recovery, const char *path);

/*
 * A table with room for one row that adds `content` bytes or elements to a variable-length column.
 * Writes the tables to the writer if there was no room. NULL after an error.
 */
struct xt_table *recovery_table(struct recovery *recovery, enum xt_kind kind, size_t content);

/* The XT_STRING_ID of a text (an id of recovery->texts). */
uint64_t recovery_string(struct recovery *recovery, uint32_t text);

/* The XT_STRING_ID of a name. If it is unknown, that of "[unnamed]", and *is_known is false. */
uint64_t recovery_name(struct recovery *recovery, enum xt_name_of of, uint64_t key, bool *is_known);

/* The XT_PYTHON_FRAME_ID of a source line. name and file are ids of recovery->texts. */
uint64_t recovery_python_frame(struct recovery *recovery, uint32_t name, uint32_t file,
			       uint32_t line, uint32_t first_line);

/* Allocates the tables. 0 or -ENOMEM. */
int recovery_open_tables(struct recovery *recovery);
void recovery_close_tables(struct recovery *recovery);

/* Adds rows for the recovered GPU work that the log does not have. */
void recovery_add_work(struct recovery *recovery);

/* Adds the final ACCOUNT rows. */
void recovery_add_account(struct recovery *recovery);

/* Passes all tables to the writer. 0 or -errno. */
int recovery_add_tables(struct recovery *recovery);

#endif
