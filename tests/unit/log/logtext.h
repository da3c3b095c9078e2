/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a log to text and back, so that tests can write and compare logs as text.
 *
 * The first line is "LOG pid start_monotonic_ns start_realtime_ns log_id". Each further line is a
 * row: its kind, then its columns in order. A column is a number, a "text" (with \xNN for
 * unprintable bytes), or a [list,of,numbers]. An empty line or another kind starts a new chunk.
 */
#ifndef XT_TEST_LOG_LOGTEXT_H
#define XT_TEST_LOG_LOGTEXT_H

#include "log/write/writer.h"
#include "xtrace/reader.h"

/* Writes the log to path, which must not exist. */
void logtext_write(const char *text, const char *path);

/* Adds the rows of text (without the LOG line) to the writer. */
void logtext_add(const char *text, struct xt_writer *writer);

/* Returns the log (or one chunk) as text. The caller frees it. Reads to the end. */
char *logtext_of_reader(struct xt_reader *reader);
char *logtext_of_chunk(const struct xt_chunk *chunk);

#endif
