/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems in the order in which they were found.
 */
#include "diff/base/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/message.h"

void problems_add(struct problems *p, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	line = xt_vasprintf(format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->lines[i], line) != 0)
			continue;
		free(line);
		return;
	}
	xt_grow(&p->lines, &p->capacity, p->count + 1, sizeof(*p->lines));
	p->lines[p->count++] = line;
}

void problems_free(struct problems *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->lines[i]);
	free(p->lines);
	*p = (struct problems){0};
}

void problems_print(const struct problems *p)
{
	for (size_t i = 0; i < p->count; i++)
		print_error("%s", p->lines[i]);
}
