/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on stderr. An error names the command as the user typed it.
 */
#ifndef XT_CLI_MESSAGE_H
#define XT_CLI_MESSAGE_H

#include <stdbool.h>

/* Exit statuses. xtrace record passes on any other status of the traced program. */
enum exit_status {
	STATUS_OK = 0,
	STATUS_INCOMPLETE = 1, /* something was damaged or missing; all the rest was written */
	STATUS_FAILED = 2,     /* wrong usage, nothing readable, or an output was not written */
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128, /* plus the signal number */
};

/* The name that errors begin with, such as "xtrace diff". It must stay valid. */
void message_set_name(const char *name);
const char *message_name(void);

/* Print errors only. */
void message_set_quiet(void);
bool message_is_quiet(void);

/* A line that begins with the name of the command. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line that begins with "xtrace", unless --quiet was given. */
void print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
