/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log as text, both ways, so that tests can say what they write and compare what they read.
 *
 * The first line is "LOG pid start_monotonic_ns start_realtime_ns log_id". Each further line is a
 * row: its kind, then its columns in order: a number, a "text" (with \xNN for what is not
 * printable), or a [list,of,numbers]. An empty line, or another kind, begins a new chunk.
 */
#ifndef XT_TEST_LOG_LOGTEXT_H
#define XT_TEST_LOG_LOGTEXT_H

#include "log/write/writer.h"
#include "xtrace/reader.h"

/* Writes the text's log to path, which must not exist. */
void logtext_write(const char *text, const char *path);

/* Adds the rows of text (without the LOG line) to the writer. */
void logtext_add(const char *text, struct xt_writer *writer);

/* The log (or the one chunk) as text; to be freed. The reader is read to its end. */
char *logtext_of_reader(struct xt_reader *reader);
char *logtext_of_chunk(const struct xt_chunk *chunk);

#endif
