/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints messages and progress on stderr, and derives the exit status from the messages.
 */
#include "merge/base/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "log/base/monotonic.h"

#define FIRST_NS    UINT64_C(1000000000) /* shorter work needs no line */
#define STEP_NS	    UINT64_C(100000000)
#define BAR_COLUMNS 30

static char *format_line(const char *format, va_list arguments)
{
	char *raw = xt_vasprintf(format, arguments), *clean = text_clean_copy(raw);

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
	list_append(report->names, (struct shown_name){text_clean_copy(path), xt_strdup(shown)});
}

/* The longest renamed path at this place of a line; NULL: none. */
static const struct shown_name *find_name(const struct report *report, const char *line,
					  const char *at)
{
	const struct shown_name *found = NULL;

	if (at > line && at[-1] != ' ' && at[-1] != '\'')
		return NULL;
	for (size_t i = 0; i < report->names.count; i++) {
		size_t length = strlen(report->names.list[i].path);

		/* A log's path may have a suffix. A directory "a" is no word of a sentence. */
		if (length && !strncmp(at, report->names.list[i].path, length) &&
		    strchr(":'.", at[length]) && (!found || length > strlen(found->path)))
			found = &report->names.list[i];
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
	report->status = larger(report->status, status);
	list_append(report->warnings, line);
}

struct held_line {
	enum line_kind kind;
	enum exit_status status;
	char *line;
};

static bool was_reported(const struct report *report, const char *line)
{
	for (size_t w = 0; w < report->warnings.count; w++)
		if (!strcmp(report->warnings.list[w], line))
			return true;
	return false;
}

/* Takes ownership of line. */
static void hold(struct report *report, enum line_kind kind, enum exit_status status, char *line)
{
	list_append(report->held, (struct held_line){kind, status, line});
}

/* Takes ownership of line. */
static void emit(struct report *report, enum line_kind kind, enum exit_status status, char *line)
{
	if (report->is_held) {
		hold(report, kind, status, line);
		return;
	}
	if (report->is_redacted)
		line = redact_line(report, line);
	if (kind == LINE_WARN_ONCE && was_reported(report, line)) {
		free(line);
		return;
	}
	if (kind == LINE_ERROR || !report->quiet)
		print_line(report, line);
	if (kind == LINE_NOTE)
		free(line);
	else
		keep_line(report, line, status);
}

void report_line(struct report *report, enum line_kind kind, enum exit_status status,
		 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	emit(report, kind, status, format_line(format, arguments));
	va_end(arguments);
}

void report_release(struct report *report, struct report *held)
{
	for (size_t i = 0; i < held->held.count; i++)
		emit(report, held->held.list[i].kind, held->held.list[i].status,
		     held->held.list[i].line);
	report->status = larger(report->status, held->status);
	held->held.count = 0;
	report_free(held);
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->warnings.count; i++)
		free(report->warnings.list[i]);
	for (size_t i = 0; i < report->held.count; i++)
		free(report->held.list[i].line);
	for (size_t i = 0; i < report->names.count; i++)
		free_all(report->names.list[i].path, report->names.list[i].shown);
	free_all(report->names.list, report->held.list, report->warnings.list);
	*report = (struct report){0};
}

void progress_begin(struct progress *progress, bool is_quiet)
{
	const char *term = getenv("TERM");

	*progress = (struct progress){
		.is_on = !is_quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb"),
		.start_ns = monotonic_ns(),
	};
	progress->next_ns = progress->start_ns + FIRST_NS;
}

void progress_expect(struct progress *progress, uint64_t bytes)
{
	progress->total_bytes += bytes;
}

static void draw(struct progress *progress, uint64_t done_bytes, uint64_t ns)
{
	double part = (double)done_bytes / (double)progress->total_bytes;
	double passed_s = (double)(ns - progress->start_ns) / 1e9;
	char bar[BAR_COLUMNS + 1];

	part = part > 1 ? 1 : part;
	for (int c = 0; c < BAR_COLUMNS; c++)
		bar[c] = c < (int)(part * BAR_COLUMNS) ? '#' : '.';
	bar[BAR_COLUMNS] = '\0';
	fprintf(stderr, "\r\033[K%s: reading [%s] %3.0f %%", message_name(), bar, part * 100);
	if (part > 0.01)
		fprintf(stderr, ", %.0f s left", passed_s / part - passed_s);
	fflush(stderr);
	progress->is_shown = true;
}

void progress_at(struct progress *progress, uint64_t bytes)
{
	uint64_t ns;

	if (!progress->is_on || !progress->total_bytes)
		return;
	ns = monotonic_ns();
	if (ns < progress->next_ns)
		return;
	progress->next_ns = ns + STEP_NS;
	draw(progress, progress->done_bytes + bytes, ns);
}

void progress_done(struct progress *progress, uint64_t bytes)
{
	progress->done_bytes += bytes;
	progress_at(progress, 0);
}

void progress_clear(struct progress *progress)
{
	if (!progress->is_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->is_shown = false;
}
