/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons in the order in which they came up.
 */
#include "diff/base/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"

void problems_add(struct problems *p, const char *format, ...)
{
	va_list arguments;
	char *line, **larger;
	int length;

	va_start(arguments, format);
	length = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->lines[i], line) != 0)
			continue;
		free(line);
		return;
	}
	if (p->count == p->capacity) {
		larger = realloc(p->lines, (p->capacity * 2 + 8) * sizeof(*larger));
		if (!larger) {
			print_error("%s", line);
			abort(); /* never a pass by silence */
		}
		p->lines = larger;
		p->capacity = p->capacity * 2 + 8;
	}
	p->lines[p->count++] = line;
}

void problems_free(struct problems *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->lines[i]);
	free(p->lines);
	*p = (struct problems){0};
}
