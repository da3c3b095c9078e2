/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/why.h"

#include <stdarg.h>
#include <stdio.h>

int refuse(const struct why *why, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, why->bytes, format, args);
	va_end(args);
	return error;
}
