/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints messages on stderr and derives the exit status from them.
 */
#include "merge/base/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static char *format_line(const char *format, va_list arguments)
{
	char *raw, *clean;

	if (vasprintf(&raw, format, arguments) < 0)
		return NULL;
	clean = text_clean_copy(raw);
	free(raw);
	return clean;
}

struct shown_name {
	char *path;
	char *shown;
};

void report_rename(struct report *report, const char *path, const char *shown)
{
	/* Messages have the path cleaned, too. */
	struct shown_name name = {text_clean_copy(path), xt_strdup(shown)};

	xt_grow(&report->names, &report->name_capacity, report->name_count + 1, sizeof(name));
	report->names[report->name_count++] = name;
}

/* The longest renamed path at this place of a line; NULL: none. */
static const struct shown_name *find_name(const struct report *report, const char *line,
					  const char *at)
{
	const struct shown_name *found = NULL;

	if (at > line && at[-1] != ' ' && at[-1] != '\'')
		return NULL;
	for (size_t i = 0; i < report->name_count; i++) {
		size_t length = strlen(report->names[i].path);

		/* A log's path may have a suffix. A directory "a" is no word of a sentence. */
		if (length && !strncmp(at, report->names[i].path, length) &&
		    strchr(":'.", at[length]) && (!found || length > strlen(found->path)))
			found = &report->names[i];
	}
	return found;
}

/* Takes ownership of line. */
static char *redact_line(const struct report *report, char *line)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = xt_open_memstream(&text, &bytes);

	for (const char *at = line; *at;) {
		const struct shown_name *name = find_name(report, line, at);

		fputs(name ? name->shown : (const char[]){*at, '\0'}, out);
		at += name ? strlen(name->path) : 1;
	}
	xt_close_memstream(out);
	free(line);
	text_hide_folders(text);
	return text;
}

static void print_line(struct report *report, const char *line)
{
	progress_clear(&report->progress);
	fprintf(stderr, "%s: %s\n", message_name(), line);
}

/* Takes ownership of line. */
static void keep_line(struct report *report, char *line, enum exit_status status)
{
	if (report->status < status)
		report->status = status;
	xt_append(report->warnings, report->warning_count, report->warning_capacity, line);
}

/* How a line is printed. */
enum line_kind {
	MANNER_NOTE,
	MANNER_WARN,
	MANNER_WARN_ONCE,
	MANNER_ERROR,
};

struct held_line {
	enum line_kind line_kind;
	enum exit_status status;
	char *line;
};

static bool was_reported(const struct report *report, const char *line)
{
	for (size_t w = 0; w < report->warning_count; w++)
		if (!strcmp(report->warnings[w], line))
			return true;
	return false;
}

/* Takes ownership of line. */
static void hold(struct report *report, enum line_kind line_kind, enum exit_status status,
		 char *line)
{
	xt_append(report->held, report->held_count, report->held_capacity,
		  (struct held_line){line_kind, status, line});
}

/* Takes ownership of line. */
static void emit(struct report *report, enum line_kind line_kind, enum exit_status status,
		 char *line)
{
	if (report->is_held) {
		hold(report, line_kind, status, line);
		return;
	}
	if (report->is_redacted)
		line = redact_line(report, line);
	if (line_kind == MANNER_WARN_ONCE && was_reported(report, line)) {
		free(line);
		return;
	}
	if (line_kind == MANNER_ERROR || !report->quiet)
		print_line(report, line);
	if (line_kind == MANNER_NOTE)
		free(line);
	else
		keep_line(report, line, status);
}

void report_note(struct report *report, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	emit(report, MANNER_NOTE, STATUS_OK, format_line(format, arguments));
	va_end(arguments);
}

void report_warn(struct report *report, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	emit(report, MANNER_WARN, STATUS_INCOMPLETE, format_line(format, arguments));
	va_end(arguments);
}

void report_warn_once(struct report *report, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	emit(report, MANNER_WARN_ONCE, STATUS_INCOMPLETE, format_line(format, arguments));
	va_end(arguments);
}

void report_error(struct report *report, enum exit_status status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	emit(report, MANNER_ERROR, status, format_line(format, arguments));
	va_end(arguments);
}

void report_release(struct report *report, struct report *held)
{
	for (size_t i = 0; i < held->held_count; i++)
		emit(report, held->held[i].line_kind, held->held[i].status, held->held[i].line);
	if (report->status < held->status)
		report->status = held->status;
	held->held_count = 0;
	report_free(held);
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->warning_count; i++)
		free(report->warnings[i]);
	for (size_t i = 0; i < report->held_count; i++)
		free(report->held[i].line);
	for (size_t i = 0; i < report->name_count; i++) {
		free(report->names[i].path);
		free(report->names[i].shown);
	}
	free(report->names);
	report->names = NULL;
	report->name_count = report->name_capacity = 0;
	free(report->held);
	free(report->warnings);
	report->held = NULL;
	report->held_count = report->held_capacity = 0;
	report->warnings = NULL;
	report->warning_count = report->warning_capacity = 0;
}
