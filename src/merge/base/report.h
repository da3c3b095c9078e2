/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user is told besides the results: one line each on stderr, and the exit status.
 *
 * Lines are cleaned of control characters, so that nothing in a log reaches the terminal as a
 * command. Warnings are kept for the summary.
 */
#ifndef XT_MERGE_REPORT_H
#define XT_MERGE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/message.h"
#include "merge/base/progress.h"

struct held_line;

struct report {
	bool is_held; /* lines wait for report_release() */
	struct held_line *held;
	size_t held_count;
	size_t held_capacity;
	bool quiet; /* warnings and notes are not printed */
	enum exit_status status;
	char **warnings;
	size_t warning_count;
	size_t warning_capacity;
	struct progress progress; /* gives way to lines */
};

/* Something went well that is worth a line. */
void report_note(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Something is damaged or missing: the status becomes at least STATUS_INCOMPLETE. */
void report_warn(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* As report_warn(), but nothing if the same was said before. */
void report_warn_once(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Something asked for cannot be had: printed even if quiet, the status becomes at least that. */
void report_error(struct report *report, enum exit_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Says in the one report what another one has held, and frees that. So threads can have reports of
 * their own, and lines still come in a fixed order.
 */
void report_release(struct report *report, struct report *held);

void report_free(struct report *report);

#endif
