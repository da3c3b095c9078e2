/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for the user: one line each on stderr, and the exit status. Control characters are
 * replaced, so that a log cannot control the terminal. Warnings are kept for the summary.
 *
 * Shows progress on a line of stderr that overwrites itself, if stderr is a terminal.
 */
#ifndef XT_MERGE_REPORT_H
#define XT_MERGE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/message.h"
#include "log/base/grow.h"

struct held_line;
struct shown_name;

struct progress {
	bool is_on;    /* stderr is a terminal */
	bool is_shown; /* the line is visible */
	uint64_t total_bytes;
	uint64_t done_bytes; /* of completed parts */
	uint64_t start_ns;
	uint64_t next_ns; /* time of the next update */
};

struct report {
	bool is_held; /* lines wait for report_release() */
	LIST(struct held_line) held;
	bool quiet;	  /* do not print warnings and notes */
	bool is_redacted; /* paths are shortened: see text_hide_folders() */
	LIST(struct shown_name) names;
	enum exit_status status;
	LIST(char *) warnings;
	struct progress progress; /* its line is removed before a message is printed */
};

/* Shows a path under another name in the messages of a redacted report. Copies both. */
void report_rename(struct report *report, const char *path, const char *shown);

enum line_kind {
	LINE_NOTE,
	LINE_WARN,
	LINE_WARN_ONCE,
	LINE_ERROR,
};

/* Reports a line of a kind, and raises the status to at least `status`. */
void report_line(struct report *report, enum line_kind kind, enum exit_status status,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Prints a note, such as a success that the user should see. */
#define report_note(report, ...) report_line(report, LINE_NOTE, STATUS_OK, __VA_ARGS__)

/* Reports damaged or missing data. The status becomes at least STATUS_INCOMPLETE. */
#define report_warn(report, ...) report_line(report, LINE_WARN, STATUS_INCOMPLETE, __VA_ARGS__)

/* Like report_warn(), but only once per text. */
#define report_warn_once(report, ...)                                                              \
	report_line(report, LINE_WARN_ONCE, STATUS_INCOMPLETE, __VA_ARGS__)

/* Reports that a request cannot be met, even if quiet. The status becomes at least `status`. */
#define report_error(report, status, ...) report_line(report, LINE_ERROR, status, __VA_ARGS__)

/*
 * Prints the held lines of another report and frees them. Threads can thus have reports of their
 * own, and lines are printed in a fixed order.
 */
void report_release(struct report *report, struct report *held);

/* Frees the members, not the report itself. */
void report_free(struct report *report);

/* Shows nothing during the first second. */
void progress_begin(struct progress *progress, bool is_quiet);

/* Sets the total number of bytes. Call it before the work. */
void progress_expect(struct progress *progress, uint64_t bytes);

/* Sets the bytes done in the current part. Cheap enough to call at any rate. */
void progress_at(struct progress *progress, uint64_t bytes);

/* Adds the bytes of a completed part. */
void progress_done(struct progress *progress, uint64_t bytes);

/* Removes the line, so that another can be printed. */
void progress_clear(struct progress *progress);

#endif
