/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the injected library to the user: single lines on stderr, only about what keeps it
 * from working. Never on stdout. Not for the hot path.
 *
 * A message is dropped if stderr would block, because the program must not wait for its reader. It
 * is also dropped if descriptor 2 is no longer the file it was when the library was loaded.
 */
#ifndef XT_INJECT_LOG_MESSAGE_H
#define XT_INJECT_LOG_MESSAGE_H

#include <stddef.h>

/* Prints "xtrace: " and the text as one line, in one write. Keeps errno; no cancellation point. */
void log_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From now on, appends the messages of this thread to `lines`, a string in line_bytes, instead:
 * "; " and the text for each. NULL: to stderr again.
 */
void log_message_collect(char *lines, size_t line_bytes);

/* Prints the text as it is. Async-signal-safe, also on a small stack. */
void log_message_text(const char *text);

#endif
