/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on stderr and the exit status they lead to.
 */
#include "merge/base/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "merge/base/grow.h"
#include "merge/base/text.h"

static char *format_line(const char *format, va_list arguments)
{
	char *raw, *clean;
	int length = vasprintf(&raw, format, arguments);

	if (length < 0)
		return NULL;
	clean = malloc(text_clean_bound((size_t)length) + 1);
	if (clean)
		clean[text_clean(clean, raw, (size_t)length, '\0')] = '\0';
	free(raw);
	return clean;
}

static void print_line(struct report *report, const char *line)
{
	progress_clear(&report->progress);
	fprintf(stderr, "xtrace-merge: %s\n", line ? line : "out of memory");
}

void report_note(struct report *report, const char *format, ...)
{
	va_list arguments;
	char *line;

	if (report->quiet)
		return;
	va_start(arguments, format);
	line = format_line(format, arguments);
	va_end(arguments);
	print_line(report, line);
	free(line);
}

/* Takes over line. */
static void keep_line(struct report *report, char *line, enum exit_status status)
{
	if (report->status < status)
		report->status = status;
	if (!line || grow(&report->warnings, &report->warning_capacity, report->warning_count + 1,
			  sizeof(*report->warnings)) < 0) {
		free(line);
		return;
	}
	report->warnings[report->warning_count++] = line;
}

void report_warn(struct report *report, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	line = format_line(format, arguments);
	va_end(arguments);
	if (!report->quiet)
		print_line(report, line);
	keep_line(report, line, STATUS_INCOMPLETE);
}

void report_warn_once(struct report *report, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	line = format_line(format, arguments);
	va_end(arguments);
	for (size_t w = 0; line && w < report->warning_count; w++) {
		if (strcmp(report->warnings[w], line))
			continue;
		free(line);
		return;
	}
	if (!report->quiet)
		print_line(report, line);
	keep_line(report, line, STATUS_INCOMPLETE);
}

void report_error(struct report *report, enum exit_status status, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	line = format_line(format, arguments);
	va_end(arguments);
	print_line(report, line);
	keep_line(report, line, status);
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->warning_count; i++)
		free(report->warnings[i]);
	free(report->warnings);
	report->warnings = NULL;
	report->warning_count = report->warning_capacity = 0;
}
