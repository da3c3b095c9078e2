/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the injected library has to say to the user: single lines on stderr, never on stdout, and
 * only about what keeps it from doing its work. Not for the hot path.
 *
 * A line is said if stderr takes it at once: a program must not wait for who reads what we say. And
 * if descriptor 2 is the stderr that it was when the library was loaded: a program may have closed it, and the
 * number may be that of a file or a connection by now.
 */
#ifndef XT_INJECT_LOG_MESSAGE_H
#define XT_INJECT_LOG_MESSAGE_H

/* Prints "xtrace: " and the text as one line, in one write. Keeps errno; nowhere is a thread cancelled. */
void log_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Likewise, of a text as it is. Async-signal-safe, also on a small stack. */
void log_message_text(const char *text);

#endif
