/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for the user: one line each on stderr, and the exit status. Control characters are
 * replaced, so that a log cannot control the terminal. Warnings are kept for the summary.
 */
#ifndef XT_MERGE_REPORT_H
#define XT_MERGE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/message.h"
#include "merge/base/progress.h"

struct held_line;
struct shown_name;

struct report {
	bool is_held; /* lines wait for report_release() */
	struct held_line *held;
	size_t held_count;
	size_t held_capacity;
	bool quiet;	  /* do not print warnings and notes */
	bool is_redacted; /* paths are shortened: see text_hide_folders() */
	struct shown_name *names;
	size_t name_count;
	size_t name_capacity;
	enum exit_status status;
	char **warnings;
	size_t warning_count;
	size_t warning_capacity;
	struct progress progress; /* its line is removed before a message is printed */
};

/* Shows a path under another name in the messages of a redacted report. Copies both. */
void report_rename(struct report *report, const char *path, const char *shown);

/* Prints a note, such as a success that the user should see. */
void report_note(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports damaged or missing data. The status becomes at least STATUS_INCOMPLETE. */
void report_warn(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Like report_warn(), but only once per text. */
void report_warn_once(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports that a request cannot be met, even if quiet. The status becomes at least `status`. */
void report_error(struct report *report, enum exit_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Prints the held lines of another report and frees them. Threads can thus have reports of their
 * own, and lines are printed in a fixed order.
 */
void report_release(struct report *report, struct report *held);

void report_free(struct report *report);

#endif
