/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on stderr.
 */
#include "cli/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *command_name = "xtrace";
static bool is_quiet;

void message_set_name(const char *name)
{
	command_name = name;
}

const char *message_name(void)
{
	return command_name;
}

void message_set_quiet(void)
{
	is_quiet = true;
}

bool message_is_quiet(void)
{
	return is_quiet;
}

/* Names of files can contain control characters, which must not reach a terminal. */
static void print_line(const char *name, const char *format, va_list arguments)
{
	char *line;

	if (vasprintf(&line, format, arguments) < 0)
		return;
	for (char *at = line; *at; at++)
		if (((unsigned char)*at < ' ' && *at != '\n' && *at != '\t') || *at == '\177')
			*at = '_';
	fprintf(stderr, "%s: %s\n", name, line);
	free(line);
}

void print_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(command_name, format, arguments);
	va_end(arguments);
}

void print_note(const char *format, ...)
{
	va_list arguments;

	if (is_quiet)
		return;
	va_start(arguments, format);
	print_line("xtrace", format, arguments);
	va_end(arguments);
}
